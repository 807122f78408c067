#!/usr/bin/perl
# ModSecurity 2's own regression tests, sent to Apache with ModSecurity 2 or to Portcullis, with what each makes of them.
#   modsecurity2-tests.pl --tests FOLDER --engine apache|portcullis [--program PATH] [--known FILE] [--count N] [FILE [N]]
# FOLDER is tests/regression of ModSecurity 2's source (Debian: apt-get source modsecurity-apache). Looks at the answer, the error
# log, the audit log and files that a test names; the debug log is ModSecurity's own and has no counterpart here.
# A line of the file KNOWN is `FILE N reason`: a test that fails, and must. Needs Perl's libwww-perl, Apache and its ModSecurity 2.
# Our default rules (9000100 and on, as ModSecurity's recommended ones) are left out, since the tests have none. Loopback only; stops
# only what it started.
use strict;
use warnings;
no warnings 'once';
use Getopt::Long qw(GetOptions);
use IO::Handle;
use IO::Socket::INET;
use POSIX qw(WNOHANG);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Time::HiRes qw(sleep time);
use HTTP::Request;
use HTTP::Response;
use LWP::UserAgent;

my ($tests, $engine, $program, $known_file, $count, $verbose) = ('', '', 'target/debug/portcullis', '', 0, 0);
GetOptions('tests=s' => \$tests, 'engine=s' => \$engine, 'program=s' => \$program, 'known=s' => \$known_file,
    'count=i' => \$count, 'verbose' => \$verbose) or exit 2;
-d $tests or die "modsecurity2-tests: --tests $tests: no such folder\n";
$engine =~ /^(apache|portcullis)$/ or die "modsecurity2-tests: --engine is apache or portcullis\n";

our $UA = LWP::UserAgent->new(timeout => 10, agent => 'ModSecurity Regression Tests/1.2.3');
my $work = tempdir('modsecurity2-tests-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $work;
# Workers of an Apache that root starts are another user.
for my $folder (qw(logs logs/audit logs/subdir tmp upload data conf)) {
    make_path("$work/$folder");
    chmod 0777, "$work/$folder";
}
system('cp', '-r', "$tests/server_root/htdocs", "$work/htdocs");
system("cp $tests/server_root/conf/* $work/conf/ 2>/dev/null");
my ($port, $static_port) = (free_port(), free_port());
my %log = (error => "$work/logs/error.log", audit => "$work/logs/modsec_audit.log", debug => "$work/logs/modsec_debug.log");
%ENV = (%ENV, SERVER_ROOT => $work, SERVER_PORT => $port, SERVER_NAME => 'localhost', TEST_SERVER_ROOT => $work,
    DATA_DIR => "$work/data", TEMP_DIR => "$work/tmp", UPLOAD_DIR => "$work/upload", CONF_DIR => "$work/conf",
    MODULES_DIR => '/usr/lib/apache2/modules', LOGS_DIR => "$work/logs", SCRIPT_DIR => $tests, REGRESSION_DIR => $tests,
    DIST_ROOT => $work, AUDIT_LOG => $log{audit}, DEBUG_LOG => $log{debug}, ERROR_LOG => $log{error},
    HTTPD_CONF => "$work/apache.conf", HTDOCS => "$work/htdocs", USER_AGENT => $UA->agent);

my %known = read_known();
my %started;
END { my $code = $?; stop($_) for keys %started; $? = $code }
$SIG{INT} = $SIG{TERM} = sub { exit 1 };

apache("$work/static.conf", $static_port, '');
my ($only_file, $only) = @ARGV;
my ($ran, %outcome) = (0);
for my $path (sort glob "$tests/{action,config,misc,rule,target}/*.t") {
    my ($file) = $path =~ m{([^/]+/[^/]+)$};
    next if defined $only_file and $only_file ne $file;
    my @cases = cases($path);
    for my $n (1 .. @cases) {
        next if defined $only and $only != $n;
        $ran++;
        my $wrong = run_case($cases[$n - 1], $file, $n);
        my $state = $wrong ? ($known{"$file $n"} ? 'known' : 'failed') : ($known{"$file $n"} ? 'unexpected' : 'passed');
        $outcome{$state}++;
        my $name = "$file $n " . ($cases[$n - 1]{comment} // '');
        print "$state: $name" . ($wrong ? ": $wrong" : '') . "\n" if $state ne 'passed' or $verbose;
    }
}
printf "%s: %d tests, %d passed, %d known to fail, %d failed, %d passed that were known to fail\n", $engine, $ran,
    map { $outcome{$_} // 0 } qw(passed known failed unexpected);
if ($count and $ran != $count) { print "ran $ran tests, not $count\n"; exit 1 }
exit(($outcome{failed} or $outcome{unexpected}) ? 1 : 0);

sub cases {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    local $/;
    my $text = <$in>;
    my @C;
    eval "no strict; no warnings; \@C = ($text); 1" or die "$path: $@";
    return @C;
}

# Nothing, or what was not as the test says.
sub run_case {
    my ($t, $file, $n) = @_;
    truncate_logs();
    my $conf = ref $t->{conf} eq 'CODE' ? eval { $t->{conf}->() } : $t->{conf};
    $conf = '' unless defined $conf;
    # Rules name files beside their own.
    open my $out, '>', "$work/conf/rules.conf" or die "$work/conf/rules.conf: $!\n";
    print $out $conf;
    close $out;
    my ($pid, $why) = $engine eq 'apache' ? apache("$work/apache.conf", $port, "Include $work/conf/rules.conf") : portcullis();
    return "not started: $why" unless $pid;
    my $wrong = judge($t);
    stop($pid);
    return $wrong;
}

sub judge {
    my ($t) = @_;
    if (exists $t->{prerun} and defined $t->{prerun}) {
        my $code = eval { $t->{prerun}->() };
        return 'prerun' if !defined $code or $code;
    }
    if (exists $t->{request}) {
        my $response = do_request($t->{request}) or return 'no answer';
        for my $key (sort keys %{ $t->{match_response} || {} }) {
            my ($not, $what) = $key =~ /^(-?)(.*)$/;
            my $re = $t->{match_response}{$key};
            $re = $re->{apache} or next if ref $re eq 'HASH';
            my $text = $what eq 'status' ? $response->code : $what eq 'content' ? $response->content : $response->as_string;
            my $found = $text =~ /$re/m;
            return "$what " . ($not ? 'has' : 'lacks') . " $re (" . $response->code . ')' if $not ? $found : !$found;
        }
    }
    if (defined $t->{test}) {
        my $code = eval { $t->{test}->() };
        return 'test: ' . ($@ || $code // 'nothing') if !defined $code or $code;
    }
    for my $key (sort keys %{ $t->{match_log} || {} }) {
        my ($not, $name) = $key =~ /^(-?)(.*)$/;
        next if $name eq 'debug';
        my $m = $t->{match_log}{$key};
        $m = $m->{apache} or next if ref $m eq 'HASH';
        # A log is written a moment after the answer.
        my $found = match_log($name, $m->[0], $not ? 0.3 : 2);
        return "$name log " . ($not ? 'has' : 'lacks') . " $m->[0]" if $not ? defined $found : !defined $found;
    }
    for my $key (sort keys %{ $t->{match_file} || {} }) {
        my ($not, $name) = $key =~ /^(-?)(.*)$/;
        my $found = match_log($name, $t->{match_file}{$key}, 2);
        return "file $name" if $not ? defined $found : !defined $found;
    }
    return;
}

sub match_log {
    my ($name, $re, $patience) = @_;
    my $path = $log{$name} // $name;
    my $end = time + ($patience // 0);
    while (1) {
        my $text = '';
        if (open my $in, '<', $path) { local $/; $text = <$in> // '' }
        return $text unless defined $re;
        return $& if $text =~ /$re/m;
        return if time >= $end;
        sleep 0.05;
    }
}
sub read_log { return match_log($_[0], undef) }
sub match_file { return match_log(@_) }
sub dbg { }
sub vrb { }
sub msg { print "  @_\n" if $verbose }

sub do_request {
    my ($request) = @_;
    $request = eval { $request->() } if ref $request eq 'CODE';
    return $UA->request($request) if ref $request and $request->isa('HTTP::Request');
    return raw_request($request);
}
sub do_raw_request { return raw_request(join '', @_) }

sub raw_request {
    my ($bytes) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 10) or return;
    print $socket $bytes;
    $socket->flush;
    shutdown $socket, 1;
    local $/;
    local $SIG{ALRM} = sub { close $socket };
    alarm 10;
    my $answer = <$socket>;
    alarm 0;
    return defined $answer ? HTTP::Response->parse($answer) : undef;
}

# As the tests write requests: indented, with line feeds.
sub normalize_raw_request_data {
    my ($text) = @_;
    $text =~ s/^[ \t]*\r?\n//;
    my ($indent) = $text =~ /^([ \t]*)/;
    $text =~ s/^$indent//mg;
    $text =~ s/(\r?\n)[ \t]+$/$1/;
    $text =~ s/(?<!\r)\n/\r\n/g;
    return $text;
}

sub encode_chunked {
    my ($data, $size) = @_;
    $size ||= 128;
    my $out = '';
    for (my $at = 0; $at < length $data; $at += $size) {
        my $chunk = substr $data, $at, $size;
        $out .= sprintf "%x\r\n%s\r\n", length $chunk, $chunk;
    }
    return "${out}0\r\n\r\n";
}

sub truncate_logs {
    for (values %log) { open my $out, '>', $_; chmod 0666, $_ }
}

# Apache on a port, with rules or (no module) as the application behind us.
sub apache {
    my ($path, $on, $rules) = @_;
    my $static = $path =~ /static/;
    my @modules = qw(mpm_event authz_core dir mime autoindex headers alias);
    push @modules, qw(unique_id proxy proxy_http access_compat authn_core) unless $static;
    open my $out, '>', $path or die "$path: $!\n";
    print $out "LoadModule ${_}_module /usr/lib/apache2/modules/mod_$_.so\n"
        for grep { -e "/usr/lib/apache2/modules/mod_$_.so" } @modules;
    print $out "LoadModule security2_module /usr/lib/apache2/modules/mod_security2.so\n" unless $static;
    my $error = $static ? "$work/static-error.log" : $log{error};
    print $out <<"END";
ServerName localhost
ServerRoot $work
User www-data
Group www-data
Listen 127.0.0.1:$on
PidFile $path.pid
DefaultRuntimeDir $work
LogLevel debug
ErrorLog $error
TypesConfig /etc/mime.types
DocumentRoot $work/htdocs
StartServers 1
ServerLimit 2
ThreadLimit 10
ThreadsPerChild 10
MaxRequestWorkers 20
<Directory $work/htdocs>
Options +Indexes +FollowSymLinks
Require all granted
</Directory>
$rules
END
    close $out;
    return start($on, "$path.out", '/usr/sbin/apache2', '-f', $path, '-DFOREGROUND');
}

sub portcullis {
    open my $out, '>', "$work/portcullis.toml" or die "$work/portcullis.toml: $!\n";
    print $out <<"END";
workers = 1
error_log = { file = "$log{error}" }
[[listeners]]
name = "http"
address = "127.0.0.1:$port"
http = { compat = "apache", half_close = true }
[[sites]]
name = "tests"
hosts = ["*"]
mode = "crs"
upstream = "app"
rules = { setup = ["$work/conf/rules.conf"], directives = "SecRuleRemoveById 9000100-9000199" }
request_body = { ambiguous = "pass", unreadable = "inspect", second_readings = false }
[upstreams.app]
endpoints = ["http://127.0.0.1:$static_port"]
# Rules of the tests send requests to the server itself.
[upstreams.itself]
endpoints = ["http://localhost:$port"]
END
    close $out;
    return start($port, "$work/portcullis.out", $program, 'run', '--config', "$work/portcullis.toml");
}

# The process and nothing, or nothing and what it said.
sub start {
    my ($on, $said, @command) = @_;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>', $said;
        open STDERR, '>&', \*STDOUT;
        exec { $command[0] } @command or POSIX::_exit(127);
    }
    $started{$pid} = 1;
    for (1 .. 400) {
        if (waitpid($pid, WNOHANG) == $pid) {
            delete $started{$pid};
            open my $in, '<', $said;
            my @lines = $in ? <$in> : ();
            chomp @lines;
            my @errors = grep { /error/i } @lines;
            return (undef, @errors ? join(' / ', @errors) : @lines ? $lines[-1] : "exit $?");
        }
        my $probe = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $on, Timeout => 1);
        return ($pid) if $probe;
        sleep 0.025;
    }
    stop($pid);
    return (undef, 'does not listen');
}

sub stop {
    my ($pid) = @_;
    return unless delete $started{$pid};
    kill TERM => $pid;
    for (1 .. 200) {
        return if waitpid($pid, WNOHANG) == $pid;
        sleep 0.02;
    }
    kill KILL => $pid;
    waitpid $pid, 0;
}

sub free_port {
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp') or die "no port: $!\n";
    return $socket->sockport;
}

sub read_known {
    return unless $known_file;
    open my $in, '<', $known_file or die "$known_file: $!\n";
    return map { /^(\S+ \d+) \S/ ? ($1 => 1) : () } <$in>;
}
