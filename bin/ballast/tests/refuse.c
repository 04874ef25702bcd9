/* Refuses one large allocation: the test says from how many bytes on one is large, and which one. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

/* What the file named by REFUSE holds. */
static struct wanted {
    uint64_t bytes; /* an allocation of so many is large */
    uint64_t which; /* the one that is refused, counted from 1; none by 0 */
    uint64_t seen;  /* large ones since it was set to 0 */
    uint64_t size;  /* of the one that was refused */
} *wanted;

__attribute__((constructor)) static void look(void) {
    const char *name = getenv("REFUSE");
    int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *place = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *wanted, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place != MAP_FAILED)
        wanted = place;
}

static int is_refused(size_t bytes) {
    if (!wanted || bytes < __atomic_load_n(&wanted->bytes, __ATOMIC_RELAXED))
        return 0;
    uint64_t which = __atomic_load_n(&wanted->which, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&wanted->seen, 1, __ATOMIC_RELAXED) != which)
        return 0;
    __atomic_store_n(&wanted->size, bytes, __ATOMIC_RELAXED);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes) { return is_refused(bytes) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return is_refused(count * bytes) ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *block, size_t bytes) { return is_refused(bytes) ? NULL : __libc_realloc(block, bytes); }
void *memalign(size_t align, size_t bytes) { return is_refused(bytes) ? NULL : __libc_memalign(align, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }
int posix_memalign(void **block, size_t align, size_t bytes) {
    *block = memalign(align, bytes);
    return *block ? 0 : ENOMEM;
}
