/** Characters that XML 1.0 cannot express, not even as a reference. */
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes a text for XML or HTML: between tags, or in a quoted attribute. */
export function escapeMarkup(text: string): string {
  return text.replace(NOT_XML, "\ufffd").replace(/[&<>"']/g, (mark) => ENTITIES[mark] ?? mark);
}
