/** Maps texts to small numbers: one number per distinct text, in order of first use. */
export interface Dictionary {
  codeOf(text: string): number;
  /** Returns the code of a text that is already known. */
  find(text: string): number | undefined;
  textOf(code: number): string;
  size(): number;
}

export function createDictionary(): Dictionary {
  const codes = new Map<string, number>();
  const texts: string[] = [];
  return {
    codeOf(text) {
      const known = codes.get(text);
      if (known !== undefined) return known;
      codes.set(text, texts.length);
      return texts.push(text) - 1;
    },
    find: (text) => codes.get(text),
    textOf(code) {
      const text = texts[code];
      if (text === undefined) throw new RangeError(`no text with code ${code}`);
      return text;
    },
    size: () => texts.length,
  };
}
