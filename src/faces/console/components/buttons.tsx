/** Buttons and menus. */
import { Button, type ButtonProps, Group, Menu } from "@mantine/core";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Scope } from "#model/kinds.ts";
import { useMay } from "../api/session.ts";
import { copyText, useNote } from "../state/browser.ts";
import { Icon, type IconName } from "../style/icons.tsx";

interface Props extends Omit<ButtonProps, "children"> {
  readonly word: ReactNode;
  /** Its name for people who do not see what it stands beside. */
  readonly label?: string;
  readonly icon?: IconName;
  readonly title?: string;
  /** Set for a button that stays pressed. */
  readonly isPressed?: boolean;
  /** A page of the console: then it is a link. */
  readonly href?: string;
  readonly onClick?: () => void;
}

/** A button that does not ask for attention. */
export function SubtleButton({ word, label, icon, isPressed, href, onClick, ...button }: Props) {
  const shown = {
    variant: isPressed === true ? "light" : "default",
    "aria-label": label,
    "aria-pressed": isPressed,
    ...(icon === undefined ? {} : { leftSection: <Icon name={icon} size={13} /> }),
    ...button,
    children: word,
  };
  return href === undefined ? (
    <Button {...shown} onClick={onClick} />
  ) : (
    <Button {...shown} component={Link} href={href} />
  );
}

interface ActProps<Wanted> extends Omit<Props, "onClick" | "href"> {
  /** The right that it needs. Readers without it do not see the button. */
  readonly scope?: Scope;
  readonly change: UseMutationResult<unknown, Error, Wanted>;
  readonly input: Wanted;
}

/** A button that runs a change. It cannot be pressed again before the change has ended. */
export function ActButton<Wanted>({ scope = "act", change, input, ...button }: ActProps<Wanted>) {
  if (!useMay(scope)) return null;
  return <SubtleButton loading={change.isPending} onClick={() => change.mutate(input)} {...button} />;
}

/** Copies a text and says so. */
export function CopyButton({ text, children }: { readonly text: () => string; readonly children: string }) {
  const [result, say] = useNote(1_500);
  return (
    <SubtleButton
      icon={result === "copied" ? "check" : "copy"}
      word={<span aria-live="polite">{result ?? children}</span>}
      onClick={() => void copyText(text()).then((isCopied) => say(isCopied ? "copied" : "not copied"))}
    />
  );
}

interface ChoiceMenuProps extends Omit<ButtonProps, "children"> {
  readonly word: ReactNode;
  readonly label?: string;
  /** Function of each item, by the item's words. */
  readonly items: Readonly<Record<string, () => void>>;
}

/** A button with a menu. Its word may change: it says what became of the choice. */
export function ChoiceMenu({ word, label, items, ...button }: ChoiceMenuProps) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant="default"
          aria-label={label}
          rightSection={<Icon name="down" size={12} />}
          {...button}
        >
          <span aria-live="polite">{word}</span>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {Object.entries(items).map(([name, choose]) => (
          <Menu.Item key={name} onClick={choose}>
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

interface ChoicesProps<Name extends string> {
  readonly label: string;
  readonly names: readonly Name[];
  readonly words?: Partial<Readonly<Record<Name, string>>>;
  readonly chosen: readonly string[];
  readonly onToggle: (name: Name) => void;
}

/** Names of which several can be chosen, or one at a time, as the caller decides. */
export function Choices<Name extends string>({
  label,
  names,
  words = {},
  chosen,
  onToggle,
}: ChoicesProps<Name>) {
  return (
    <Group gap={4} role="group" aria-label={label}>
      {names.map((name) => (
        <SubtleButton
          key={name}
          fw={400}
          c={chosen.includes(name) ? "var(--lw-text)" : "dimmed"}
          word={words[name] ?? name}
          isPressed={chosen.includes(name)}
          onClick={() => onToggle(name)}
        />
      ))}
    </Group>
  );
}
