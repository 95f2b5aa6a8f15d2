const CODES = {
  bold: "1",
  dim: "2",
  red: "31",
  green: "32",
  yellow: "33",
  cyan: "36",
  onRed: "97;41",
  onYellow: "30;43",
  onCyan: "30;46",
  onGreen: "30;42",
} as const;

export type Style = keyof typeof CODES;
export type Paint = (style: Style, text: string) => string;

/** Sets and resets the style of one piece of text. */
export const paintColour: Paint = (style, text) => `\u001b[${CODES[style]}m${text}\u001b[0m`;
/** Returns the text without a style, for pipes and files. */
export const paintPlain: Paint = (_style, text) => text;
