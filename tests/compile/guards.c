/* Blocks of guards for which an optimizing compiler must give no warning. It knows that variables
   set in them are set, and no break leaves them. Only compiled. */
#include "devtensor.h"

double guards(dvt_array *x);
dvt_array *ways_out(dvt_array *x, int n);
int inner_breaks(dvt_array *x, int n);
int nested(dvt_array *x, int n);
int whole_statements(int n);

double guards(dvt_array *x) {
    dvt_array *loss, *copy;
    double value;
    DVT_SCOPE {
        DVT_RECORD {
            loss = dvt_mean(x, DVT_ALL);
        }
        dvt_backward(loss);
        DVT_WITH_CTX(dvt_cpu()) {
            copy = dvt_zeros_like(loss);
        }
        value = dvt_item(copy);
    }
    return value;
}

dvt_array *ways_out(dvt_array *x, int n) {
    DVT_SCOPE {
        if (n == 1)
            return x;
        if (n == 2)
            goto out;
        DVT_RECORD {
            if (n == 3)
                continue;
            x = dvt_add(x, x);
        }
        if (n == 4)
            continue;
        dvt_add(x, x);
    }
    n++;
out:
    return n > 5 ? x : NULL;
}

int inner_breaks(dvt_array *x, int n) {
    int i, j, sum = 0;
    for (i = 0; i < n; i++)
        DVT_SCOPE {
            if (dvt_item(x) > 1)
                continue;
            for (;;)
                if (dvt_item(x) > 2)
                    break;
            switch (i) {
            case 1:
                dvt_add(x, x);
                break;
            default:
                sum++;
            }
            for (j = 0; j < n; j++)
                DVT_SCOPE {
                    if (j == i)
                        continue;
                    while (dvt_item(x) < 3)
                        if (dvt_dim(x, 0) == j)
                            break;
                    if (j > 5)
                        return sum;
                }
        }
    do
        DVT_SCOPE {
            if (dvt_item(x) > 3)
                continue;
        }
    while (dvt_item(x) > 4);
    return sum;
}

static int small(dvt_array *x, int n) {
    DVT_SCOPE {
        if (n == 0)
            return 1;
        dvt_add(x, x);
    }
    return 2;
}

int nested(dvt_array *x, int n) {
    int sum = small(x, n);
    DVT_SCOPE {
        sum += small(x, 0);
        DVT_WITH_CTX(dvt_cpu()) {
            sum += small(x, 3);
            DVT_PAUSE {
                DVT_SCOPE {
                    sum += small(x, 4);
                    DVT_SCOPE
                    sum += small(x, n);
                }
            }
        }
    }
    return sum;
}

int whole_statements(int n) {
    DVT_SCOPE
    switch (n) {
    case 1:
        n++;
        break;
    case 2:
        return 5;
    case 3:
        continue;
    case 4:
        DVT_SCOPE {
            n += 2;
        }
        break;
    default:
        goto out;
    }
out:
    return n;
}
