#!/usr/bin/perl
# A CGI program: sends a body back.
use strict;
use warnings;
binmode STDIN;
binmode STDOUT;
my $body = '';
while (read(STDIN, $body, 65536, length $body)) { }
print "Content-Type: application/octet-stream\r\nX-Method: $ENV{REQUEST_METHOD}\r\nX-Target: $ENV{REQUEST_URI}\r\n";
print "Content-Length: ", length $body, "\r\n\r\n", $body;
