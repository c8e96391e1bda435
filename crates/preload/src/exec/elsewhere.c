/* The functions that execute a program, where the library can't be found (`elsewhere.rs`): each
 * calls the C library's with a copy of the environment that does not name the library.
 *
 * They are in C for the variable arguments of `execl` and similar, and for a copy on the stack,
 * which the child of a `vfork` may make. Each is jumped to instead of the C library's function of
 * its name.
 */

#define _GNU_SOURCE
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

/* `elsewhere.rs` has the same functions, in this order. */
enum call { EXECVE, EXECVPE, FEXECVE, EXECVEAT, SPAWN, SPAWNP };
enum { ROOM = 4096 };

#pragma GCC visibility push(hidden)
size_t antiphon_variables(char *const *environment);
int antiphon_without_us(char *const *environment, size_t length, char **copy, char *preload);
void *antiphon_real_exec(int call);

int antiphon_execve(const char *path, char *const *arguments, char *const *environment);
int antiphon_execv(const char *path, char *const *arguments);
int antiphon_execl(const char *path, const char *argument, ...);
int antiphon_execle(const char *path, const char *argument, ...);
int antiphon_execvp(const char *name, char *const *arguments);
int antiphon_execlp(const char *name, const char *argument, ...);
int antiphon_execvpe(const char *name, char *const *arguments, char *const *environment);
int antiphon_fexecve(int file, char *const *arguments, char *const *environment);
int antiphon_execveat(int folder, const char *path, char *const *arguments,
		      char *const *environment, int flags);
int antiphon_posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const *arguments,
			 char *const *environment);
int antiphon_posix_spawnp(pid_t *child, const char *name, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attributes, char *const *arguments,
			  char *const *environment);
#pragma GCC visibility pop

typedef int with_path(const char *, char *const *, char *const *);
typedef int with_file(int, char *const *, char *const *);
typedef int with_folder(int, const char *, char *const *, char *const *, int);
typedef int spawns(pid_t *, const char *, const posix_spawn_file_actions_t *,
		   const posix_spawnattr_t *, char *const *, char *const *);

struct request {
	enum call call;
	int file, flags;
	const char *path;
	char *const *arguments, *const *environment;
	pid_t *child;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attributes;
};

static int call(const struct request *it, char *const *environment)
{
	void *real = antiphon_real_exec(it->call);
	switch (it->call) {
	case EXECVE:
	case EXECVPE:
		return ((with_path *)real)(it->path, it->arguments, environment);
	case FEXECVE:
		return ((with_file *)real)(it->file, it->arguments, environment);
	case EXECVEAT:
		return ((with_folder *)real)(it->file, it->path, it->arguments, environment,
					     it->flags);
	default:
		return ((spawns *)real)(it->child, it->path, it->actions, it->attributes,
					it->arguments, environment);
	}
}

static int execute(const struct request *it)
{
	size_t length = antiphon_variables(it->environment);
	char *copy[length + 1], preload[ROOM];
	if (antiphon_without_us(it->environment, length, copy, preload))
		return call(it, copy);
	return call(it, it->environment);
}

static int execute_path(enum call call, const char *path, char *const *arguments,
			char *const *environment)
{
	const struct request it = { .call = call, .path = path, .arguments = arguments,
				    .environment = environment };
	return execute(&it);
}

int antiphon_execve(const char *path, char *const *arguments, char *const *environment)
{
	return execute_path(EXECVE, path, arguments, environment);
}

int antiphon_execv(const char *path, char *const *arguments)
{
	return antiphon_execve(path, arguments, environ);
}

int antiphon_execvpe(const char *name, char *const *arguments, char *const *environment)
{
	return execute_path(EXECVPE, name, arguments, environment);
}

int antiphon_execvp(const char *name, char *const *arguments)
{
	return antiphon_execvpe(name, arguments, environ);
}

int antiphon_fexecve(int file, char *const *arguments, char *const *environment)
{
	const struct request it = { .call = FEXECVE, .file = file, .arguments = arguments,
				    .environment = environment };
	return execute(&it);
}

int antiphon_execveat(int folder, const char *path, char *const *arguments,
		      char *const *environment, int flags)
{
	const struct request it = { .call = EXECVEAT, .file = folder, .path = path,
				    .arguments = arguments, .environment = environment,
				    .flags = flags };
	return execute(&it);
}

static int spawn(enum call call, pid_t *child, const char *path,
		 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		 char *const *arguments, char *const *environment)
{
	const struct request it = { .call = call, .child = child, .path = path,
				    .actions = actions, .attributes = attributes,
				    .arguments = arguments, .environment = environment };
	return execute(&it);
}

int antiphon_posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const *arguments,
			 char *const *environment)
{
	return spawn(SPAWN, child, path, actions, attributes, arguments, environment);
}

int antiphon_posix_spawnp(pid_t *child, const char *name, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attributes, char *const *arguments,
			  char *const *environment)
{
	return spawn(SPAWNP, child, name, actions, attributes, arguments, environment);
}

/* The number of arguments, including the null pointer. */
static size_t count(const char *argument, va_list *list)
{
	size_t arguments = 1;
	for (; argument; argument = va_arg(*list, const char *))
		arguments++;
	return arguments;
}

/* Stores the arguments, and a null pointer after them. */
static void collect(char **arguments, const char *argument, va_list *list)
{
	for (; argument; argument = va_arg(*list, const char *))
		*arguments++ = (char *)argument;
	*arguments = NULL;
}

/* Declares `arguments`, an array of the arguments from `argument` on. Afterwards `list` is after
 * the null pointer. */
#define COLLECT(arguments, argument, list)                    \
	va_start(list, argument);                             \
	char *arguments[count(argument, &list)];              \
	va_end(list);                                         \
	va_start(list, argument);                             \
	collect(arguments, argument, &list)

int antiphon_execl(const char *path, const char *argument, ...)
{
	va_list list;
	COLLECT(arguments, argument, list);
	va_end(list);
	return antiphon_execve(path, arguments, environ);
}

int antiphon_execlp(const char *name, const char *argument, ...)
{
	va_list list;
	COLLECT(arguments, argument, list);
	va_end(list);
	return antiphon_execvpe(name, arguments, environ);
}

int antiphon_execle(const char *path, const char *argument, ...)
{
	va_list list;
	COLLECT(arguments, argument, list);
	char *const *environment = va_arg(list, char *const *);
	va_end(list);
	return antiphon_execve(path, arguments, environment);
}
