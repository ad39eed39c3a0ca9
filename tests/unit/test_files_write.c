/* Tests that saving keeps the mode, the owner and the links of an existing file. The content
   reaches the disk before the old file is replaced. A failure at any step leaves the old file
   unchanged and no other file. */
#include "dvt_faults.h"
#include "dvt_golden.h"

#if !defined(DEVTENSOR_NO_FILES) && !defined(_WIN32)
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#if !defined(DEVTENSOR_NO_THREADS)
#include <pthread.h>
#endif

static char folder[600];

static const char *in_folder(const char *name) {
    static char path[4][1000];
    static int next;
    char *mine = path[next++ % 4];
    snprintf(mine, sizeof path[0], "%s/%s", folder, name);
    return mine;
}

static void enter(const char *name) {
    snprintf(folder, sizeof folder, "%s", golden_temporary(name));
    CHECK(mkdir(folder, 0755) == 0);
}

/* Returns the number of entries of the directory. */
static int entries(void) {
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    int n = 0;
    while (directory && (entry = readdir(directory)) != NULL)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (directory)
        closedir(directory);
    return n;
}

static unsigned mode_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (unsigned)info.st_mode & 07777 : 0;
}

static dvt_array *numbers(void) {
    return dvt_arange(0, 4, 1, DVT_F32, dvt_cpu());
}

DVT_TEST(files_keep_mode_and_owner) {
    const char *path;
    struct stat info;
    mode_t before = umask(027);
    enter("mode");
    path = in_folder("x.npy");
    CHECK(dvt_save_npy(path, numbers()) == DVT_OK);
    CHECK_INT(mode_of(path), 0640); /* same as every new file */
    umask(022);
    CHECK(chmod(path, 0600) == 0);
    CHECK(dvt_save_npy(path, numbers()) == DVT_OK);
    CHECK_INT(mode_of(path), 0600);
    CHECK(chmod(path, 0666) == 0);
    CHECK(dvt_save_npy(path, numbers()) == DVT_OK);
    CHECK_INT(mode_of(path), 0666);
    if (geteuid() == 0 && chown(path, 12345, 23456) == 0) {
        CHECK(dvt_save_npy(path, numbers()) == DVT_OK);
        CHECK(stat(path, &info) == 0 && info.st_uid == 12345 && info.st_gid == 23456);
        CHECK_INT(mode_of(path), 0666);
    }
    umask(before);
    CHECK_INT(entries(), 1);
    CHECK(remove(path) == 0);
    CHECK(rmdir(folder) == 0);
}

static int is_link(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

DVT_TEST(files_keep_links) {
    enter("links");
    CHECK(mkdir(in_folder("below"), 0755) == 0);
    CHECK(golden_write(in_folder("below/target.npy"), "old", 3));
    CHECK(chmod(in_folder("below/target.npy"), 0600) == 0);
    CHECK(symlink("below/target.npy", in_folder("relative.npy")) == 0);
    CHECK(symlink(in_folder("relative.npy"), in_folder("chain.npy")) == 0);
    CHECK(symlink("nowhere.npy", in_folder("below/dangling.npy")) == 0);
    CHECK(symlink("loop.npy", in_folder("loop.npy")) == 0);
    CHECK(symlink("missing/folder.npy", in_folder("lost.npy")) == 0);
    CHECK(dvt_save_npy(in_folder("chain.npy"), numbers()) == DVT_OK);
    CHECK(is_link(in_folder("chain.npy")) && is_link(in_folder("relative.npy")));
    CHECK_VALUES(dvt_load_npy(in_folder("below/target.npy"), dvt_cpu()), 0, 0, 1, 2, 3);
    CHECK_INT(mode_of(in_folder("below/target.npy")), 0600);
    CHECK(dvt_save_npy(in_folder("below/dangling.npy"), numbers()) == DVT_OK);
    CHECK(is_link(in_folder("below/dangling.npy")));
    CHECK_VALUES(dvt_load_npy(in_folder("below/nowhere.npy"), dvt_cpu()), 0, 0, 1, 2, 3);
    CHECK_REFUSED(dvt_save_npy(in_folder("loop.npy"), numbers()), DVT_ERR_IO, "loop.npy");
    CHECK_REFUSED(dvt_load_npy(in_folder("loop.npy"), dvt_cpu()), DVT_ERR_IO, "loop.npy");
    CHECK_REFUSED(dvt_save_npy(in_folder("lost.npy"), numbers()), DVT_ERR_IO,
                  "the directory must exist");
    CHECK(is_link(in_folder("loop.npy")) && is_link(in_folder("lost.npy")));
    CHECK_INT(entries(), 5);
    remove(in_folder("below/target.npy"));
    remove(in_folder("below/dangling.npy"));
    remove(in_folder("below/nowhere.npy"));
    CHECK(rmdir(in_folder("below")) == 0); /* no temporary file remains */
    remove(in_folder("relative.npy"));
    remove(in_folder("chain.npy"));
    remove(in_folder("loop.npy"));
    remove(in_folder("lost.npy"));
    CHECK(rmdir(folder) == 0);
}

/* Each allocation of following links, of writing and of reading non-contiguous arrays fails
   once. */
DVT_FAULTS(files_linked) {
    static char real[600], linked[600];
    dvt_array *x = dvt_reshape(dvt_arange(0, 6, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(2, 3));
    dvt_status status;
    unsigned char *bytes;
    char *order;
    size_t n = 0;
    snprintf(real, sizeof real, "%s", golden_temporary("faults.npy"));
    snprintf(linked, sizeof linked, "%s", golden_temporary("link.npy"));
    FAULTS_TRUE(symlink(real, linked) == 0);
    status = x ? dvt_save_npy(linked, x) : DVT_ERR_HOST_MEMORY;
    FAULTS_OK(status);
    FAULTS_TRUE(is_link(linked));
    bytes = status == DVT_OK ? golden_file(real, &n) : NULL;
    order = bytes ? strstr((char *)bytes + 10, "False") : NULL;
    if (order) {
        memcpy(order, "True ", 5);
        FAULTS_TRUE(golden_write(real, bytes, n));
        FAULTS_ADD(dvt_load_npy(linked, dvt_cpu()));
    } else {
        FAULTS_TRUE(0);
        FAULTS_TRUE(access(real, F_OK) != 0); /* no partial file */
    }
    free(bytes);
    remove(linked);
    remove(real);
}

DVT_TEST(files_long_names) {
    char name[252];
    enter("long");
    memset(name, 'n', sizeof name);
    memcpy(name + 246, ".npy", 5);
    CHECK(dvt_save_npy(in_folder(name), numbers()) == DVT_OK);
    CHECK_VALUES(dvt_load_npy(in_folder(name), dvt_cpu()), 0, 0, 1, 2, 3);
    CHECK(remove(in_folder(name)) == 0);
    CHECK(rmdir(folder) == 0);
}

/* Runs as a user who is not root, because root ignores permissions. */
DVT_TEST(files_without_permission) {
    int root = geteuid() == 0;
    enter("forbidden");
    CHECK(golden_write(in_folder("x.npy"), "old", 3));
    CHECK(chmod(in_folder("x.npy"), 0666) == 0);
    CHECK(chmod(folder, 0555) == 0);
    if (root && seteuid(65534) != 0)
        SKIP("root cannot change to another user");
    CHECK_REFUSED(dvt_save_npy(in_folder("x.npy"), numbers()), DVT_ERR_IO, "allow new files");
    CHECK_REFUSED(dvt_save_npy(in_folder("new.npy"), numbers()), DVT_ERR_IO, "allow new files");
    CHECK(!root || seteuid(0) == 0);
    CHECK_INT(entries(), 1);
    CHECK(chmod(folder, 0777) == 0);
    CHECK(chmod(in_folder("x.npy"), 0444) == 0);
    CHECK(!root || seteuid(65534) == 0);
    CHECK_REFUSED(dvt_save_npy(in_folder("x.npy"), numbers()), DVT_ERR_IO, "could not be written");
    CHECK(!root || seteuid(0) == 0);
    CHECK_INT(entries(), 1);
    CHECK_INT(mode_of(in_folder("x.npy")), 0444);
    CHECK(remove(in_folder("x.npy")) == 0);
    CHECK(rmdir(folder) == 0);
}

/* Saving through a descriptor of this process keeps earlier output, and later output follows. */
DVT_TEST(files_descriptors) {
    char path[40];
    unsigned char *bytes;
    size_t n;
    int file;
    enter("descriptor");
    file = open(in_folder("x"), O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && write(file, "before", 6) == 6);
    snprintf(path, sizeof path, "/dev/fd/%d", file);
    CHECK(dvt_save_npy(path, numbers()) == DVT_OK);
    CHECK(write(file, "behind", 6) == 6);
    close(file);
    bytes = golden_file(in_folder("x"), &n);
    CHECK_INT(n, 6 + 128 + 16 + 6);
    CHECK(bytes && memcmp(bytes, "before\x93NUMPY", 12) == 0 &&
          memcmp(bytes + 150, "behind", 6) == 0);
    free(bytes);
    CHECK_REFUSED(dvt_save_npy(path, numbers()), DVT_ERR_IO, path); /* closed */
    CHECK(remove(in_folder("x")) == 0);
    /* through a symbolic link, as containers use for logs */
    file = open(in_folder("x"), O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && write(file, "before", 6) == 6);
    snprintf(path, sizeof path, "/dev/fd/%d", file);
    CHECK(symlink(path, in_folder("link")) == 0);
    CHECK(dvt_save_npy(in_folder("link"), numbers()) == DVT_OK);
    close(file);
    free(golden_file(in_folder("x"), &n));
    CHECK_INT(n, 6 + 128 + 16);
    CHECK(remove(in_folder("link")) == 0 && remove(in_folder("x")) == 0);
    /* a path shorter than the names of descriptors */
    CHECK(dvt_save_npy("d.npy", numbers()) == DVT_OK && remove("d.npy") == 0);
    CHECK(rmdir(folder) == 0);
}

#if !defined(DEVTENSOR_NO_THREADS)
static unsigned char received[400];
static size_t n_received;

static void *receiving(void *user) {
    FILE *file = fopen((const char *)user, "rb");
    if (file) {
        n_received = fread(received, 1, sizeof received, file);
        fclose(file);
    }
    return NULL;
}

DVT_TEST(files_into_pipes) {
    const char *path;
    pthread_t thread;
    struct stat info;
    enter("fifo");
    path = in_folder("x");
    CHECK(mkfifo(path, 0600) == 0);
    CHECK(pthread_create(&thread, NULL, receiving, (void *)path) == 0);
    CHECK(dvt_save_npy(path, numbers()) == DVT_OK);
    pthread_join(thread, NULL);
    CHECK_INT(n_received, 128 + 16);
    CHECK_VALUES(dvt_read_npy(received, n_received, dvt_cpu()), 0, 0, 1, 2, 3);
    CHECK(stat(path, &info) == 0 && S_ISFIFO(info.st_mode));
    CHECK(remove(path) == 0);
    CHECK(rmdir(folder) == 0);
}
#endif

/* ---- the order of system calls, and the failure of each ---- */
#if defined(__linux__)
#include <sys/syscall.h>

static char calls[40]; /* f: fsync of a file, d: of a directory, m: fchmod, r: rename */
static int watched, fail_call, fail_error;

static int fails(char call) {
    size_t n = strlen(calls);
    if (!watched || n + 1 >= sizeof calls)
        return 0;
    calls[n] = call;
    calls[n + 1] = 0;
    errno = fail_error;
    return fail_call == (int)n + 1;
}

/* Replaces fsync of the C library, as the next functions replace fchmod and rename. */
int fsync(int file) {
    struct stat info;
    int directory = fstat(file, &info) == 0 && S_ISDIR(info.st_mode);
    return fails(directory ? 'd' : 'f') ? -1 : (int)syscall(SYS_fsync, file);
}

int fchmod(int file, mode_t mode) {
    return fails('m') ? -1 : (int)syscall(SYS_fchmod, file, mode);
}

int rename(const char *from, const char *to) {
    return fails('r') ? -1 : renameat(AT_FDCWD, from, AT_FDCWD, to);
}

DVT_TEST(files_are_synced_before_rename) {
    dvt_status status;
    int k;
    enter("disk");
    watched = 1;
    calls[0] = 0;
    CHECK(dvt_save_npy(in_folder("x.npy"), numbers()) == DVT_OK);
    CHECK_STR(calls, "frd");
    calls[0] = 0;
    CHECK(dvt_save_npy(in_folder("x.npy"), numbers()) == DVT_OK);
    CHECK_STR(calls, "mfrd");
    for (k = 1; k <= 4; k++) {
        watched = 0;
        CHECK(golden_write(in_folder("x.npy"), "old", 3));
        watched = 1;
        fail_call = k;
        fail_error = EIO;
        calls[0] = 0;
        status = dvt_save_npy(in_folder("x.npy"), numbers());
        watched = 0;
        /* A file system without modes is no error. When only the sync of the directory fails, the
           file is already complete. */
        CHECK_INT(status, k == 1 || k == 4 ? DVT_OK : DVT_ERR_IO);
        dvt_clear_error();
        CHECK_INT(entries(), 1);
        if (k == 2 || k == 3) {
            size_t n;
            unsigned char *bytes = golden_file(in_folder("x.npy"), &n);
            CHECK(bytes && n == 3 && memcmp(bytes, "old", 3) == 0);
            free(bytes);
        } else
            CHECK_VALUES(dvt_load_npy(in_folder("x.npy"), dvt_cpu()), 0, 0, 1, 2, 3);
    }
    /* Some file systems do not support fsync and return EINVAL, which is no error. */
    watched = 1;
    fail_call = 2;
    fail_error = EINVAL;
    calls[0] = 0;
    CHECK(dvt_save_npy(in_folder("x.npy"), numbers()) == DVT_OK);
    watched = fail_call = 0;
    CHECK(remove(in_folder("x.npy")) == 0);
    CHECK(rmdir(folder) == 0);
}
#endif
#endif
