/** Expressions after the public descriptions of the rules: simpler than the originals, with the same aim. */
const TESTS: readonly (readonly [rule: string, test: RegExp])[] = [
  ["930100", /(?:\.\.|%2e%2e|%252e%252e)(?:%2f|%5c|%252f)/i],
  ["930110", /(?:^|[/\\])\.\.[/\\]/],
  [
    "930120",
    /etc[/\\](?:passwd|shadow|hosts)|proc\/self|\.ssh\/|\.aws\/|boot\.ini|win\.ini|wp-config|\.bash_history|package\.json/i,
  ],
  ["931100", /^(?:https?|ftp):\/\/\d{1,3}(?:\.\d{1,3}){3}/i],
  ["931130", /^(?:https?|ftp):\/\//i],
  ["932100", /[;|&`({]\s*(?:cat|ls|id|uname|wget|nc|sh|bash|ping|whoami|sleep|sed|awk|cp|qty)\b/i],
  ["932105", /[;|]\s*(?:curl|pkg|uname|id|perl|python|php)\b/i],
  ["932130", /\$\(|\$\{|[<>]\(/],
  ["932150", /^\s*(?:cat|ls|wget|curl|ping|perl|nc|python|echo|sh)\s/i],
  ["932160", /(?:bin\/(?:ba)?sh|\/dev\/tcp|cmd\.exe|\/usr\/bin\/|etc\/(?:passwd|shadow)|powershell)/i],
  ["932171", /^\(\)\s*\{/],
  ["932200", /\$\{|[*?]\s*\/\w|`.*\/.*`/],
  ["933100", /<\?(?:php|=|\s)/i],
  ["933160", /\b(?:eval|system|passthru|shell_exec|exec|base64_decode|phpinfo|assert)\s*\(/i],
  [
    "934100",
    /child_process|module\.exports|\brequire\s*\(|process\.(?:env|exit|binding)|function\s*\(\)\s*\{/,
  ],
  ["934110", /169\.254\.169\.254|metadata\.google\.internal|100\.100\.100\.200/i],
  ["941100", /<script|<svg[^>]*\bon\w+|\bon(?:error|load|click|focus|toggle)\s*=|javascript:/i],
  ["941110", /<script[^>]*>/i],
  ["941130", /<!ENTITY|xlink:href|\bformaction\s*=/i],
  ["941140", /javascript:/i],
  ["941150", /\b(?:src|href|style|background|action)\s*=/i],
  ["941160", /<(?:script|iframe|object|embed|svg|body|video|form|img)\b[^>]*(?:\bon\w+|src)\s*=/i],
  ["941320", /<(?:a|p|div|table|span|img|br|ul|li|h[1-6]|strong|em|script|svg|iframe|hr|pre)\b/i],
  ["941340", /["'][^"']*>[^<]*<\/?\w/],
  ["941380", /\{\{[^}]+\}\}/],
  [
    "942100",
    /['"]\s*(?:or|and)\s.{0,24}[=<>]|\bunion\s+(?:all\s+)?select\b.+\b(?:from|null)|['"]?\s*;\s*(?:drop|insert|select|update|delete|exec)\b|\b(?:sleep|benchmark|pg_sleep|extractvalue)\s*\(|'\s*or\s*'|\d\s+(?:or|and)\s+\d+\s*=\s*\d+/i,
  ],
  ["942110", /^["'`;]+$|["'`]\s*$|^["'`]/],
  ["942120", /\|\||&&|>=|<=|!=|<>|\bnot in\b|\bis null\b/i],
  ["942130", /\b(\w+)\s*(?:=|>=?|<=?|like)\s*'?\1\b|[\w)]\s?(?:>|<|>=)\s?\d/i],
  ["942140", /information_schema|sysobjects|pg_catalog|mysql\.user|master\.\./i],
  ["942150", /\b(?:count|concat|char|substring|user|version|database|sleep|ascii|md5)\s*\(/i],
  ["942160", /\b(?:sleep|benchmark)\s*\(\s*[\d@]/i],
  ["942180", /["'`]\s*(?:or|and|like|union|--|#)|\bwhere\b.+=\s*'/i],
  ["942190", /\bunion\s+(?:all\s+)?select\b|\bxp_cmdshell|\bexec\s+master|select\b.{1,80}\bfrom\b/i],
  ["942200", /,.*?["'`].+?["'`]\s*[,)]|\/\*!/],
  ["942260", /["'`]\s*(?:or|and|like|\|\||&&|:|,|=)\s*["'`\w]/i],
  ["942280", /pg_sleep\s*\(|waitfor\s+delay|;\s*shutdown\b/i],
  ["942360", /^\s*(?:select|union)\b.*\b(?:from|select)\b|\bunion\b.+\bselect\b/i],
  ["942370", /["'`]\s*:?\s*[{[(<>=!]|["'`].*\*\s*\d/],
  ["942410", /\b(?:count|concat|char|substring|user|version|database|sleep|ascii|md5|if)\s*\(/i],
  ["942440", /--\s|--$|#\s*$|\/\*|\*\/|;--/],
  ["942450", /\b0x[0-9a-f]{4,}/i],
  ["942480", /\bwaitfor\b|\border by \d+|\bfrom\s+\w+\.\w+|dbms_lock/i],
  ["944100", /java\.lang\.(?:runtime|processbuilder)/i],
  ["944130", /\bjava\.(?:io|net|util)\.\w+|class\.module\.classloader|springframework/i],
  ["944150", /\$\{(?:\s*jndi|[^}]{0,40}(?:lower|upper|env|::-)[^}]{0,60}\})/i],
  ["944250", /\bgetruntime\b|\bnewinstance\b|\.exec\s*\(/i],
];

const SPECIAL = /[^\w\s.]/g;
const SPECIALS = 12;
const KNOWN = new Map<string, readonly (readonly [rule: string, matched: string])[]>();

/** Returns the rules that match a text, each with the part that matched. */
export function testText(text: string): readonly (readonly [rule: string, matched: string])[] {
  const known = KNOWN.get(text);
  if (known !== undefined) return known;
  const hits: (readonly [string, string])[] = [];
  for (const [rule, test] of TESTS) {
    const found = test.exec(text);
    if (found !== null) hits.push([rule, found[0].slice(0, 60)]);
  }
  if ((text.match(SPECIAL)?.length ?? 0) >= SPECIALS) hits.push(["942430", text.slice(0, 60)]);
  if (KNOWN.size > 20_000) KNOWN.clear();
  KNOWN.set(text, hits);
  return hits;
}
