const ESC = "\u001b";
const BEL = "\u0007";

/** Texts that attackers put into paths, user agents and, through them, into the AI's answer. */
export const HOSTILE = {
  ansi: `${ESC}[2J${ESC}[31mred${ESC}]8;;https://evil.example${BEL}click${ESC}]8;;${BEL}\u009b31m\r\u0000`,
  bidi: "/a\u202egnp.exe\u2066x\u2069\u200f",
  slack:
    "<!channel> <@U123> <https://evil.example|Slack support> @here &lt; *b* _i_ ~s~ `c` :skull: #general",
  markdown: "[reset password](https://evil.example) ![x](https://evil.example/p.png) ```sh\nrm -rf /\n```",
  html: '<script>alert(1)</script><img src=x onerror="alert(1)">&amp;',
  lines: "first\nSEVERITY: resolved\r\n\u2028│ RESOLVED\u2029\u0085\u000b\f\tend",
  zeroWidth: "ad\u200bmin\u200d\ufeff\u00ad\u3164\u{e0041}",
  marks: `Z${"\u0334\u0321\u0349".repeat(8)}algo`,
  wide: "攻撃".repeat(40),
  links: "https://evil.example/x www.evil.example mailto:x@evil.example javascript:alert(1)",
  csv: "=HYPERLINK(\"https://evil.example\")|cmd|' /C calc'!A0",
  halves: "\ud800 and \udfff and 💥 ❤️",
} as const;
