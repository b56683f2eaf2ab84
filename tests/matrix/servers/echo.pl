#!/usr/bin/perl
# A CGI program: sends a body back, or (REPORTS, a folder) writes down what it was asked and names the file.
use strict;
use warnings;
binmode STDIN;
binmode STDOUT;
my $body = '';
while ((my $n = read(STDIN, $body, 65536, length $body))) { }
if (my $folder = $ENV{REPORTS}) {
	my $id = "$$-" . time;
	open(my $out, '>', "$folder/$id") or die;
	printf $out qq({"m": "%s", "t": "%s", "b": "%s"}), $ENV{REQUEST_METHOD}, unpack('H*', $ENV{REQUEST_URI}), unpack('H*', $body);
	close $out;
	$body = "ok\n";
	print "X-Report: $id\r\n";
}
print "Content-Type: application/octet-stream\r\nX-Method: $ENV{REQUEST_METHOD}\r\nX-Target: $ENV{REQUEST_URI}\r\n";
print "Content-Length: ", length $body, "\r\n\r\n", $body;
