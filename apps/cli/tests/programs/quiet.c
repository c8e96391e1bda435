/* Says nothing, and exits with STATUS. */
int main(void)
{
	return STATUS;
}
