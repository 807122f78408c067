package main

import (
	"bytes"
	"io"
	"os"
	"time"
)

// page is the unit in which a reader sees a file grow while it is written.
const page = 4096

// follow copies the lines of a growing file to another, for as long as the program runs, so that a reader never
// sees a part of a line that fits a page: a line that would cross the end of a page gets a line of spaces before it.
//
// go-ftw looks for its mark in the last line at the very moment at which that line is written, and takes the half of
// it that it may see for the whole. It was made for logs that are written before the response.
func follow(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	go func() {
		var pending []byte
		written := 0
		buffer := make([]byte, 1<<16)
		for {
			n, err := in.Read(buffer)
			pending = append(pending, buffer[:n]...)
			for {
				end := bytes.IndexByte(pending, '\n') + 1
				if end == 0 {
					break
				}
				if left := page - written%page; end > left {
					spaces := append(bytes.Repeat([]byte{' '}, left-1), '\n')
					out.Write(spaces)
					written += left
				}
				out.Write(pending[:end])
				written += end
				pending = pending[end:]
			}
			if err == io.EOF && n == 0 {
				time.Sleep(200 * time.Microsecond)
			} else if err != nil && err != io.EOF {
				return
			}
		}
	}()
	return nil
}
