/* A parallel text indexer: which words are in which files, and how often.
 *
 *   indexer THREADS FILE...          prints how much it has found
 *   indexer THREADS -w WORD FILE...  prints the files that have WORD
 *
 * A thread takes the next file off the list, counts its words in a table of its own, and then adds
 * each to the index, which is in parts with a mutex each. Memory for postings comes in pieces from
 * a pool that all parts share. */
#include <ctype.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 16, SLOTS = 4096, TABLE = 8192, LETTERS = 32, PIECE = 256 };

struct posting {
	struct posting *next;
	int file, times;
};

struct word {
	struct word *next;
	struct posting *postings;
	char text[LETTERS];
};

static struct part {
	pthread_mutex_t mutex;
	struct word *slots[SLOTS];
	struct posting *free; /* up to `end` */
	struct posting *end;
	long words, postings;
} parts[PARTS];

static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static char **files;
static int count, next;
static long pieces;

/* A file's words, by open addressing. */
struct table {
	struct entry {
		char text[LETTERS];
		uint32_t hash;
		int times;
	} entries[TABLE];
	int used[TABLE], words;
};

static void *must(void *memory)
{
	if (!memory) {
		fputs("indexer: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

static struct posting *posting_of(struct part *part)
{
	if (part->free == part->end) {
		pthread_mutex_lock(&pool);
		part->free = must(calloc(PIECE, sizeof *part->free));
		pieces++;
		pthread_mutex_unlock(&pool);
		part->end = part->free + PIECE;
	}
	part->postings++;
	return part->free++;
}

static struct word *word_of(struct part *part, const char *text, uint32_t hash)
{
	struct word **slot = &part->slots[hash / PARTS % SLOTS];
	for (struct word *word = *slot; word; word = word->next)
		if (!strcmp(word->text, text))
			return word;
	struct word *word = must(calloc(1, sizeof *word));
	strcpy(word->text, text);
	word->next = *slot;
	*slot = word;
	part->words++;
	return word;
}

static void add(const struct entry *entry, int file)
{
	struct part *part = &parts[entry->hash % PARTS];
	pthread_mutex_lock(&part->mutex);
	struct word *word = word_of(part, entry->text, entry->hash);
	struct posting *posting = posting_of(part);
	*posting = (struct posting){ word->postings, file, entry->times };
	word->postings = posting;
	pthread_mutex_unlock(&part->mutex);
}

/* Adds what a table has to the index, and empties it. */
static void merge(struct table *table, int file)
{
	for (int at = 0; at < table->words; at++) {
		struct entry *entry = &table->entries[table->used[at]];
		add(entry, file);
		entry->times = 0;
	}
	table->words = 0;
}

static uint32_t hash_of(const char *text)
{
	uint32_t hash = 2166136261u;
	while (*text)
		hash = (hash ^ (unsigned char)*text++) * 16777619u;
	return hash;
}

static void tally(struct table *table, const char *text, int file)
{
	uint32_t hash = hash_of(text);
	int at = hash % TABLE;
	while (table->entries[at].times && strcmp(table->entries[at].text, text))
		at = (at + 1) % TABLE;
	struct entry *entry = &table->entries[at];
	if (!entry->times) {
		/* Half full is as full as it gets; a word may then have two postings of a file. */
		if (table->words == TABLE / 2) {
			merge(table, file);
			tally(table, text, file);
			return;
		}
		strcpy(entry->text, text);
		entry->hash = hash;
		table->used[table->words++] = at;
	}
	entry->times++;
}

static void scan(struct table *table, int file)
{
	FILE *from = fopen(files[file], "r");
	char text[LETTERS];
	int letters = 0, c;
	if (!from) {
		perror(files[file]);
		return;
	}
	do {
		c = getc_unlocked(from);
		if (c != EOF && isalnum(c)) {
			if (letters < LETTERS - 1)
				text[letters++] = (char)tolower(c);
		} else if (letters) {
			text[letters] = 0;
			tally(table, text, file);
			letters = 0;
		}
	} while (c != EOF);
	fclose(from);
	merge(table, file);
}

void *indexes(void *unused)
{
	struct table *table = must(calloc(1, sizeof *table));
	for (;;) {
		pthread_mutex_lock(&list);
		int file = next < count ? next++ : -1;
		pthread_mutex_unlock(&list);
		if (file < 0)
			break;
		scan(table, file);
	}
	free(table);
	return unused;
}

int main(int argc, char **argv)
{
	const char *wanted = argc > 3 && !strcmp(argv[2], "-w") ? argv[3] : NULL;
	int threads = argc > 1 ? atoi(argv[1]) : 0, first = wanted ? 4 : 2;
	if (threads < 1 || threads > 1024 || argc <= first) {
		fputs("usage: indexer THREADS [-w WORD] FILE...\n", stderr);
		return 2;
	}
	files = argv + first;
	count = argc - first;
	for (int at = 0; at < PARTS; at++)
		pthread_mutex_init(&parts[at].mutex, NULL);
	pthread_t *all = must(calloc((size_t)threads, sizeof *all));
	for (int at = 0; at < threads; at++)
		if (pthread_create(&all[at], NULL, indexes, NULL)) {
			fputs("indexer: no thread\n", stderr);
			return 1;
		}
	for (int at = 0; at < threads; at++)
		pthread_join(all[at], NULL);
	if (wanted) {
		uint32_t hash = hash_of(wanted);
		struct word *word = word_of(&parts[hash % PARTS], wanted, hash);
		for (struct posting *posting = word->postings; posting; posting = posting->next)
			printf("%d %s\n", posting->times, files[posting->file]);
		return 0;
	}
	long words = 0, postings = 0;
	for (int at = 0; at < PARTS; at++) {
		words += parts[at].words;
		postings += parts[at].postings;
	}
	printf("%d files, %ld words, %ld postings\n", count, words, postings);
	return 0;
}
