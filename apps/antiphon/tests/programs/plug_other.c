/* What comes to stand where the plug-in was: its one function covers all of the plug-in's. */
#define FOUR(x) x x x x
void other_function(volatile int *count)
{
    FOUR(FOUR(FOUR(FOUR(FOUR(++*count;)))))
}
