/* Counts the heap allocations of a program from outside: LD_PRELOAD this, and
 * the number stands in the first eight bytes of the file ALLOCATION_COUNT_FILE
 * names. The program under test is the one that is shipped, unchanged. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

/* Counts before main; what is shared takes over once the file is mapped. */
static uint64_t early;
static uint64_t *count = &early;

__attribute__((constructor)) static void map_the_file(void)
{
	const char *name = getenv("ALLOCATION_COUNT_FILE");
	int fd = name ? open(name, O_RDWR) : -1;
	if (fd < 0)
		return;
	void *page = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		count = page;
}

static void one_more(void)
{
	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
	one_more();
	return __libc_malloc(size);
}

void *calloc(size_t items, size_t size)
{
	one_more();
	return __libc_calloc(items, size);
}

void *realloc(void *old, size_t size)
{
	one_more();
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	one_more();
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **to, size_t alignment, size_t size)
{
	one_more();
	*to = __libc_memalign(alignment, size);
	return *to ? 0 : ENOMEM;
}
