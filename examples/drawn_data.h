/* DRAWN figures, for machines without a real data set: ten classes of 28 x 28 gray images, made
   from a seed. Position, size, angle, thickness, brightness and noise vary. A figure is the set of
   points near its strokes.
   The classes differ in the positions of their ink. So LeNet leaves the plateau of Uniform(0.07)
   after about 50 steps of 0.1. The accuracy says nothing about real data. */
#ifndef DRAWN_DATA_H
#define DRAWN_DATA_H
#include <math.h>
#include <stdint.h>

/* Returns a number of [0, 1) by splitmix64. */
static inline double drawn_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

/* Returns the distance of (x, y) from the segment between (ax, ay) and (bx, by). */
static inline double drawn_segment(double x, double y, double ax, double ay, double bx, double by) {
    double dx = bx - ax, dy = by - ay, t = ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return hypot(x - ax - t * dx, y - ay - t * dy);
}

/* Returns the distance of a point from the strokes of a class, in the figure's own coordinates,
   about [-1, 1] x [-1, 1]. */
static inline double drawn_distance(int figure, double x, double y) {
    /* Up to two segments (ax, ay, bx, by) per class; a class without segments is round. */
    static const struct {
        int n;
        double s[2][4];
    } strokes[10] = {
        {0, {{0}}},                            /* ring */
        {1, {{0, -1, 0, 1}}},                  /* bar */
        {1, {{-1, 0, 1, 0}}},                  /* beam */
        {2, {{-1, 0, 1, 0}, {0, -1, 0, 1}}},   /* plus */
        {1, {{-0.8, 0.8, 0.8, -0.8}}},         /* slash */
        {1, {{-0.8, -0.8, 0.8, 0.8}}},         /* backslash */
        {2, {{-1, -1, -1, 1}, {-1, 1, 1, 1}}}, /* L */
        {2, {{-1, -1, 1, -1}, {1, -1, 1, 1}}}, /* turned L */
        {2, {{-1, -1, 1, -1}, {-1, 1, 1, 1}}}, /* equals */
        {0, {{0}}},                            /* disc */
    };

    double r = hypot(x, y), nearest = 1e9;
    int i;
    if (figure == 0)
        return fabs(r - 0.9);
    if (figure == 9)
        return r < 0.8 ? 0 : r - 0.8;
    for (i = 0; i < strokes[figure].n; i++) {
        const double *s = strokes[figure].s[i];
        nearest = fmin(nearest, drawn_segment(x, y, s[0], s[1], s[2], s[3]));
    }
    return nearest;
}

static inline void drawn_figure(uint8_t *image, int figure, uint64_t *state) {
    double size = 7 + 3 * drawn_random(state), angle = 0.6 * (drawn_random(state) - 0.5);
    double cx = 13.5 + 5 * (drawn_random(state) - 0.5), cy = 13.5 + 5 * (drawn_random(state) - 0.5);
    double width = 1.5 + 2 * drawn_random(state), ink = 160 + 95 * drawn_random(state),
           stretch = 0.75 + 0.5 * drawn_random(state);
    double c = cos(angle) / size, s = sin(angle) / size;
    int row, column;
    for (row = 0; row < 28; row++)
        for (column = 0; column < 28; column++) {
            double x = (column - cx) * c + (row - cy) * s,
                   y = ((row - cy) * c - (column - cx) * s) * stretch;
            double edge =
                width - drawn_distance(figure, x, y) * size + 0.5; /* pixels inside the stroke */
            double value = ink * (edge < 0   ? 0
                                  : edge > 1 ? 1
                                             : edge) +
                           60 * (drawn_random(state) - 0.3);
            image[row * 28 + column] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
}

/* Writes n images of 784 bytes and their classes 0..9, in random order. The same seed gives the
   same bytes on machines with the same libm. */
static inline void drawn_images(uint8_t *images, int32_t *labels, int64_t n, uint64_t seed) {
    uint64_t state = seed * 0x632be59bd9b4e019u + 1;
    int64_t i;
    for (i = 0; i < n; i++) {
        labels[i] = (int32_t)(10 * drawn_random(&state));
        drawn_figure(images + 784 * i, (int)labels[i], &state);
    }
}

#endif
