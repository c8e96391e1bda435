memcached -u "$(id -un)" -l 127.0.0.1 -p 5392 -t "$THREADS" &
server=$!
trap 'kill $server; wait $server' EXIT
until env -u LD_PRELOAD memcping --servers=127.0.0.1:5392 2> /dev/null; do :; done
env -u LD_PRELOAD memcaslap -s 127.0.0.1:5392 -T 2 -c 32 -x 200000 \
    | sed -n 's/.*TPS: \([0-9]*\).*/ops_per_s \1/p'
