import { Button, Menu } from "@mantine/core";
import { useState } from "react";
import { type EventScope, eventsPath, toBody } from "../../api/search.ts";
import { useSession } from "../../api/session.ts";
import { Icon } from "../../look/icons.tsx";
import { copyText, quoteForShell } from "../../state/copy-text.ts";
import { shareLink } from "../../state/share-link.ts";

/** The query that the page sends, for other people and for programs. */
export function CopyMenu({ scope }: { readonly scope: EventScope }) {
  const { publicUrl } = useSession();
  const [note, setNote] = useState<string | null>(null);
  const copy = async (what: string, text: string) => {
    const isCopied = await copyText(text);
    setNote(isCopied ? `${what} copied` : "not copied");
    setTimeout(() => setNote(null), 1_500);
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" rightSection={<Icon name="down" size={12} />}>
          <span aria-live="polite">{note ?? "Copy as"}</span>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => void copy("link", shareLink(scope))}>Link with fixed times</Menu.Item>
        <Menu.Item onClick={() => void copy("curl", toCurl(scope, publicUrl ?? globalThis.location.origin))}>
          curl of this search
        </Menu.Item>
        <Menu.Item onClick={() => void copy("body", JSON.stringify(toBody(scope), null, 2))}>
          JSON of this search
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** One command per zone. The key is a variable: a copied command must not hold one. */
export function toCurl(scope: EventScope, origin: string): string {
  const body = quoteForShell(JSON.stringify(toBody(scope)));
  return scope.zones
    .map(
      ({ id }) =>
        `curl -sS ${quoteForShell(`${origin}${eventsPath(id)}/search`)} -H "AccessKey: $KEY" -H 'content-type: application/json' -d ${body}`,
    )
    .join("\n");
}
