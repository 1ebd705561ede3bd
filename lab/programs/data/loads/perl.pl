# Typical work of Perl scripts: hashes, arrays of references, regular expressions, sorting, text.
#
# The argument is the number of repetitions; the output depends only on it.
use strict;
use warnings;

my @words = qw(allocate release page arena slab magazine span class);
my $state = 42;

# A linear congruential generator, so that nothing depends on Perl's.
sub below {
    my ($limit) = @_;
    $state = ($state * 1103515245 + 12345) % 2147483648;
    return int($state / 8) % $limit;
}

# Returns lines of a log: key=value fields, some of them lists.
sub lines {
    my ($count) = @_;
    my @lines;
    for my $number (1 .. $count) {
        my @tags = map { $words[below(8)] . '-' . below(500) } 0 .. below(4);
        my $city = below(90);
        push @lines, "id=$number city=City$city price=" . below(100000) . " tags=" . join(',', @tags);
    }
    return \@lines;
}

# Parses each line into a hash of its own.
sub records {
    my ($lines) = @_;
    my @records;
    for my $line (@$lines) {
        my %record = $line =~ /(\w+)=(\S+)/g;
        $record{tags} = [split /,/, $record{tags}];
        push @records, \%record;
    }
    return \@records;
}

sub written {
    my ($record) = @_;
    my $tags = join ',', @{ $record->{tags} };
    return "id=$record->{id} city=$record->{city} price=$record->{price} tags=$tags";
}

sub grouped {
    my ($records) = @_;
    my %groups;
    for my $record (@$records) {
        push @{ $groups{"$record->{city} $_"} }, $record->{price} for @{ $record->{tags} };
    }
    my %totals;
    for my $key (keys %groups) {
        $totals{$key} += $_ for @{ $groups{$key} };
    }
    return map { "$_ $totals{$_}" } sort { $totals{$b} <=> $totals{$a} || $a cmp $b } keys %totals;
}

my $check = 0;
for (1 .. $ARGV[0]) {
    my $lines = lines(4000);
    my $records = records($lines);
    for my $place (0 .. $#$lines) {
        die "record $place was read wrongly\n" if written($records->[$place]) ne $lines->[$place];
    }
    my @groups = grouped($records);
    (my $text = join "\n", @groups) =~ s/(\w+)-(\d+)/$2\U$1/g;
    $check = ($check * 31 + unpack('%32C*', $text) + @groups) % 1000000007;
}
print "repetitions $ARGV[0] check $check\n";
