head -c 48000000 "$INPUT" | xz -1 -T "$THREADS" --block-size=1MiB -c > /dev/null
