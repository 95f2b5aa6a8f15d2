import { TextInput, type TextInputProps } from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";

interface Props extends Omit<TextInputProps, "onSubmit"> {
  /** The text in force, as the address has it. */
  readonly text: string;
  readonly onSubmit: (text: string) => void;
  readonly role?: string;
  readonly children?: ReactNode;
}

/** A text that takes effect when it is submitted. It follows the address, so that the back button is seen in it. */
export function TextForm({ text, onSubmit, role, className, children, ...input }: Props) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  return (
    <form
      role={role}
      className={className}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit(typed.trim());
      }}
    >
      <TextInput value={typed} onChange={(event) => setTyped(event.currentTarget.value)} {...input} />
      {children}
    </form>
  );
}
