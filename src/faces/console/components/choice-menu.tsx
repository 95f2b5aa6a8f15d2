import { Button, type ButtonProps, Menu } from "@mantine/core";
import type { ReactNode } from "react";
import { Icon } from "../look/icons.tsx";

interface Props extends Omit<ButtonProps, "children"> {
  readonly word: ReactNode;
  readonly label?: string;
  /** Function of each item, by the item's words. */
  readonly items: Readonly<Record<string, () => void>>;
}

/** A button with a menu. Its word may change: it says what became of the choice. */
export function ChoiceMenu({ word, label, items, ...button }: Props) {
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
