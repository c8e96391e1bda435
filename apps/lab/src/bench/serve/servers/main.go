// A goroutine for each connection, for `antiphon bench serve`: main CASE WORKERS.
// Prints the port that it listens on, and serves until its stdin is closed.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

func main() {
	if len(os.Args) != 3 {
		fail("wants CASE WORKERS")
	}
	workers, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fail(err.Error())
	}
	runtime.GOMAXPROCS(workers)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err.Error())
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	switch os.Args[1] {
	case "echo":
		for {
			connection, err := listener.Accept()
			if err != nil {
				fail(err.Error())
			}
			go echo(connection)
		}
	case "http":
		fail(http.Serve(listener, http.HandlerFunc(page)).Error())
	default:
		fail("no case " + os.Args[1])
	}
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(2)
}

func echo(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 16<<10)
	for {
		read, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err := connection.Write(buffer[:read]); err != nil {
			return
		}
	}
}

func page(writer http.ResponseWriter, _ *http.Request) {
	writer.Header().Set("Content-Type", "text/plain")
	io.WriteString(writer, "Hello, world!\n")
}
