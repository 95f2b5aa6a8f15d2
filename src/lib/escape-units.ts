/** Returns each UTF-16 unit of a text as `\uXXXX`, which JSON reads as the same text. */
export function escapeUnits(text: string): string {
  let escaped = "";
  for (let i = 0; i < text.length; i += 1)
    escaped += `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return escaped;
}
