/** Texts that mean something to a parser further on: markup, field separators, controls, other directions, other encodings. */
export const HOSTILE: readonly string[] = [
  `<script>alert(1)</script>`,
  `"><img src=x onerror=alert(1)>`,
  `</title></entry><entry><id>forged</id>`,
  `]]><!--<![CDATA[ &lt; &amp; &#0; &unknown;`,
  `x\n\nevent: reset\ndata: {"reason":"forged"}\n\n`,
  `x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n`,
  `\u0001\u0008\u001b[31m red \u007f`,
  `\u202eesrever\u202c \u2066isolate\u2069 \u200bzero\ufeff`,
  `\u2028 line \u2029 paragraph \u0085`,
  `\ud83d\ude00 \ufffe \uffff`,
  `'; drop table alerts; --`,
  `{{constructor.constructor('return 1')()}} \${7*7} <%= 7*7 %>`,
  `javascript:alert(1) https://evil.example/ www.evil.example`,
  `=cmd|'/c calc'!A1`,
];
