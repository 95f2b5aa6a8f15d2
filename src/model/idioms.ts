/** The beginning of a text that is read. */
const MAX_CHARS = 2_048;

/**
 * Idioms of attacks, as parts of one regular expression over lower-case text whose runs of white space are one space. Left out is what
 * ordinary text has as well, such as `concat(`, `--`, `.env` and `system (`. Every repetition has a limit.
 */
const IDIOMS: readonly string[] = [
  // SQL
  String.raw`union ?(?:all |distinct )?\(? ?select\b`,
  String.raw`\( ?select (?:\*|case|count|char|chr|'|"|\d|concat|null|sleep|\(|min|max|@@|top|group_concat|substr|[a-z_.]{1,30} from)`,
  String.raw`\bselect (?:\* from|count ?\(|case when|char ?\(|'|null,|@@|concat ?\(|like ?\(|\d{1,9} ?(?:,|from\b|where\b|#|--|$))`,
  String.raw`\b(?:x?or|and|where|having|not|\|\||&&)[ ('"]{1,5}(\d{1,9})['"]? ?(?:=|<|>|like) ?['"(]{0,3}(?:\d|select)`,
  String.raw`(?:^|[ (])(?<n>\d{1,9}) ?= ?\k<n>(?!\d)`,
  String.raw`(['"])(\w{1,20})\3 ?(?:=|like) ?\3\4`,
  String.raw`['"][ )]{0,5}or [ (]{0,5}(?:['"]\w{0,20}['"] ?(?:=|like|is|in)|(?<w>\w{1,20}) ?= ?\k<w>\b|name\(\))`,
  String.raw`\border by \d{1,3}\b`,
  String.raw`(?:^|[^.\w])sleep ?\( ?\d`,
  String.raw`\bbenchmark ?\( ?\d|\b(?:randomblob|extractvalue|updatexml|load_file|make_set|regexp_substring|crypt_key|raise_error|pg_sleep) ?\(`,
  String.raw`waitfor ?(?:delay|time)`,
  String.raw`\b(?:dbms_(?:pipe|lock)|utl_(?:inaddr|http)|user_lock|xp_cmdshell|sp_password|ctxsys)\b`,
  String.raw`\b(?:information_schema|all_users|sysobjects|sysusers|sysdatabases|sqlite_master|pg_catalog|domain\.domains|mysql\.user)\b|rdb\$`,
  String.raw`(?:cha?r ?\( ?\d{1,3} ?\)[ |,+]{0,6}){2}`,
  String.raw`into (?:out|dump)file`,
  String.raw`(?:['");]|\d) ?(?:drop|truncate|alter) (?:table|database)|;(?: ?)(?:insert into|delete from|update \w{1,30} set|shutdown|exec|declare @)`,
  String.raw`procedure analyse|convert ?\( ?int|\bfrom dual\b|null ?, ?null|@@version|exec master`,
  // Script
  String.raw`<(?:script|iframe|bgsound|frameset)[ />]|<(?:embed|object|base) \w`,
  String.raw`\bon(?:error|load|mouseover|focus|toggle|begin|start|pointer\w{1,8}) ?= ?["'\x60]? ?(?:alert|eval|prompt|confirm|fetch|document|window|import|javascript|self|top|this)\b`,
  String.raw`(?:javascript|vbscript|livescript):(?! |void|;|["'\x60])`,
  String.raw`\b(?:alert|prompt|confirm) ?(?:\(|&#40;|\x60) ?(?:['"\x60/]|\d|document|string|xss)`,
  String.raw`document\.(?:cookie|domain|write ?\()|fromcharcode`,
  String.raw`<(?:svg|img|body|input|details|video|audio|math|marquee)[^>]{0,80}\bon\w{3,20} ?=`,
  String.raw`data: ?text/html|-moz-binding|: ?expression ?\(|srcdoc ?=`,
  String.raw`<!entity|<!\[cdata\[<|<\?import|<!doctype \w{1,20} ?\[`,
  // Traversal and files
  String.raw`(?:\.\.[/\\]{1,3}){3}`,
  String.raw`\.\.\\|\.\.;/|\\\.\.|\.\.%`,
  String.raw`etc[/\\]{1,3}(?:passwd|shadow|hosts|group|issue)\b|\bboot\.ini|\bwin\.ini|/proc/self|web-inf`,
  String.raw`winnt|system32|\bcmd\.exe|\bcmd ?/c\b`,
  String.raw`/\.(?:git|svn|hg|aws|ssh|htpasswd|htaccess|env(?:\.\w{1,20}){0,2}|npmrc|netrc|pgpass)(?:[/?]|$)|wp-config\.php|\bid_rsa\b|\.aws/credentials`,
  String.raw`(?:php|expect|phar|gopher|dict|zip|glob)://|\bfile:///?(?:etc|proc|c:)`,
  String.raw`(?:https?|ftp)://(?:\d{1,3}\.){3}\d{1,3}(?:/[\w.-]{1,40}\.(?:txt|php|sh|jpg|gif|exe)\b|$)|169\.254\.169\.254`,
  String.raw`/(?:c99|r57|shell)\.(?:php|txt)`,
  // Shell
  String.raw`(?:[;|&\x60\n]|\$\() ?(?:/bin/)?(?:cat|id|uname|whoami|wget|curl|nc|ping|netstat|nslookup|ifconfig|ls|dir|sleep)(?: -| /|[;|&\x60)]| http|$)`,
  String.raw`\$\( ?(?:curl|wget|id|whoami|cat|sleep|nslookup|ping|uname)\b`,
  String.raw`\(\) ?\{ ?:|/dev/tcp/|\bnc -[elv]|(?:bash|sh) -[ci] |chmod (?:\+x|777)|\bpowershell\b|\bcertutil\b`,
  String.raw`[;|&\x60(] ?/?bin/(?:ba|z|da|c|k)?sh\b|bin/(?:cat|ls|nc|id)\b`,
  // Template, language and lookup
  String.raw`(?:\{\{|\$\{|#\{|<%=|\{%) ?\d{1,7} ?\* ?'?\d`,
  String.raw`__(?:class|mro|subclasses|globals|builtins)__|constructor\.constructor|\{\{ ?(?:config|self|request)\b`,
  String.raw`java\.lang\.(?:runtime|process)|getruntime ?\(|class\.?loader|_memberaccess|\bognl\b|freemarker\.template`,
  String.raw`child_process['"]|process\.mainmodule|return process`,
  String.raw`jndi:|\$\{(?:jndi|lower:|upper:|::-|\$\{)|\$\{env:\w{1,30}:-`,
  String.raw`<\?php|\$_(?:get|post|request|cookie|server|files)\b|<\?=`,
  String.raw`\b(?:base64_decode|passthru|shell_exec|proc_open|popen|phpinfo|call_user_func) ?\(|\beval ?\( ?(?:\$|base64|'|"|atob|string)|\bexec ?\( ?['"]`,
  String.raw`o:\d{1,3}:"\w{1,40}":\d|rO0AB`.toLowerCase(),
];

const IDIOM = new RegExp(IDIOMS.map((idiom) => `(?:${idiom})`).join("|"));

/**
 * Returns whether a text holds an idiom of an attack: SQL, script, traversal, shell, template or lookup injection. The text may
 * be encoded for a URL, once or twice. A text without one may be an attack as well, and one with one may be ordinary.
 */
export function hasIdiom(text: string): boolean {
  return IDIOM.test(decode(text.slice(0, MAX_CHARS)));
}

/** Returns the text in lower case without the usual disguises: escapes, comments as spaces, bytes that UTF-8 forbids. */
function decode(text: string): string {
  const toChar = (_: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16));
  let plain = text;
  for (let times = 0; times < 2 && plain.includes("%"); times += 1)
    plain = plain.replace(/%([0-9a-f]{2})/gi, toChar);
  if (/[\xc0\xc1]/.test(plain))
    plain = plain.replace(/\xc0[\xae.]/g, ".").replace(/\xc0[\xaf/]|\xc1./gs, "/");
  if (plain.includes("\\x")) plain = plain.replace(/\\x([0-9a-f]{2})/gi, toChar);
  if (plain.includes("&#")) {
    plain = plain.replace(/&#x0{0,6}([0-9a-f]{2});?/gi, toChar);
    plain = plain.replace(/&#0{0,6}(\d{2,3});?/g, (_, decimal) => String.fromCharCode(Number(decimal)));
  }
  return plain
    .toLowerCase()
    .replace(/\/\*\*\/|\0/g, " ")
    .replace(/[\s+]+/g, " ");
}
