head -c 24000000 "$INPUT" | pbzip2 -b1 -p"$THREADS" -c > /dev/null
