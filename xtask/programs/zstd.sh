for round in 1 2 3 4; do
    head -c 100000000 "$INPUT" | zstd -3 -T"$THREADS" -B1048576 -q -c > /dev/null
done
