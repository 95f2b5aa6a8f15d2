import { type EventScope, eventsPath, toBody } from "../../api/search.ts";
import { useSession } from "../../api/session.ts";
import { ChoiceMenu } from "../../components/choice-menu.tsx";
import { copyText, quoteForShell } from "../../state/copy-text.ts";
import { useNote } from "../../state/note.ts";
import { shareLink } from "../../state/share-link.ts";

/** The query that the page sends, for other people and for programs. */
export function CopyMenu({ scope }: { readonly scope: EventScope }) {
  const { publicUrl } = useSession();
  const [note, say] = useNote(1_500);
  const copy = async (what: string, text: string) =>
    say((await copyText(text)) ? `${what} copied` : "not copied");
  const items = {
    "Link with fixed times": () => void copy("link", shareLink(scope)),
    "curl of this search": () => void copy("curl", toCurl(scope, publicUrl ?? globalThis.location.origin)),
    "JSON of this search": () => void copy("body", JSON.stringify(toBody(scope), null, 2)),
  };
  return <ChoiceMenu word={note ?? "Copy as"} items={items} />;
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
