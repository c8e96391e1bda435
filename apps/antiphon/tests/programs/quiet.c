/* Says nothing, and exits with STATUS. */
#ifdef OWN_OPTIONS
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

int main(void)
{
	return STATUS;
}
