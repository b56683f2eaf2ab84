#!/usr/bin/perl
# A CGI program: sends a body back, or (REPORT) writes down what it was asked.
use strict;
use warnings;
binmode STDIN;
binmode STDOUT;
my $body = '';
while ((my $n = read(STDIN, $body, 65536, length $body))) { }
if (my $path = $ENV{REPORT}) {
	if (!defined $ENV{CONTENT_LENGTH} || length $body == $ENV{CONTENT_LENGTH}) {
		open(my $out, '>>', $path) or die;
		syswrite $out, sprintf(qq({"m": "%s", "t": "%s", "b": "%s"}\n),
			$ENV{REQUEST_METHOD}, unpack('H*', $ENV{REQUEST_URI}), unpack('H*', $body));
	}
	$body = "ok\n";
}
print "Content-Type: application/octet-stream\r\nX-Method: $ENV{REQUEST_METHOD}\r\nX-Target: $ENV{REQUEST_URI}\r\n";
print "Content-Length: ", length $body, "\r\n\r\n", $body;
