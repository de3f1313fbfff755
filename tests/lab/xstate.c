/* User Mode Linux 6.1 keeps 2696 bytes of a process's extended registers. Linux takes them back (PTRACE_SETREGSET) only
 * whole, and on a processor with AMX the whole is larger: the guest panics before its first program. Loaded into the
 * guest's kernel (LD_PRELOAD), this completes what it gives with what the process has. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long kernel_ptrace(long request, long pid, void *addr, void *data) { return syscall(SYS_ptrace, request, pid, addr, data); }

static long set_xstate(long pid, const struct iovec *given) {
    static _Alignas(64) char whole[1 << 16];
    struct iovec all = {whole, sizeof whole};
    long status = kernel_ptrace(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &all);
    if (status < 0)
        return status;
    memcpy(whole, given->iov_base, given->iov_len < all.iov_len ? given->iov_len : all.iov_len);
    return kernel_ptrace(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...) {
    va_list args;
    va_start(args, request);
    long pid = va_arg(args, int);
    void *addr = va_arg(args, void *), *data = va_arg(args, void *);
    va_end(args);
    if (request == PTRACE_SETREGSET && addr == (void *)NT_X86_XSTATE)
        return set_xstate(pid, data);
    if (request >= PTRACE_PEEKTEXT && request <= PTRACE_PEEKUSER) { /* as in glibc the word is what is returned */
        long word, status = kernel_ptrace(request, pid, addr, &word);
        return status < 0 ? status : word;
    }
    return kernel_ptrace(request, pid, addr, data);
}
