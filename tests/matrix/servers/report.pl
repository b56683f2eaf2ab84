#!/usr/bin/perl
# A CGI program: writes down what it was asked, in a file of @WORK@/reports, and names the file in its answer.
use strict;
use warnings;
binmode STDIN;
my $body = '';
while (read(STDIN, $body, 65536, length $body)) { }
my $id = "$$-" . time;
open(my $out, '>', "@WORK@/reports/$id") or die;
printf $out qq({"m": "%s", "t": "%s", "b": "%s"}), $ENV{REQUEST_METHOD}, unpack('H*', $ENV{REQUEST_URI}), unpack('H*', $body);
close $out;
print "X-Report: $id\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";
