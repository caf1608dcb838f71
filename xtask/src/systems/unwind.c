/* What libgcc's unwinder asks glibc for, answered with what musl has: where the unwind table of the program is. For static programs only. */
#define _GNU_SOURCE
#include <link.h>

/* As in glibc's dlfcn.h. */
struct dl_find_object {
    unsigned long long flags;
    void *map_start, *map_end, *link_map, *eh_frame;
    unsigned long long reserved[7];
};

static int find_table(struct dl_phdr_info *program, size_t size, void *found)
{
    for (int i = 0; i < program->dlpi_phnum; i++)
        if (program->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            ((struct dl_find_object *)found)->eh_frame = (void *)(program->dlpi_addr + program->dlpi_phdr[i].p_vaddr);
    return 0;
}

int _dl_find_object(void *address, struct dl_find_object *found)
{
    found->eh_frame = 0;
    dl_iterate_phdr(find_table, found);
    return found->eh_frame ? 0 : -1;
}
