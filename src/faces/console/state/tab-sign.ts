import { useFavicon } from "@mantine/hooks";
import { useEffect } from "react";
import { useStatus } from "../api/status.ts";
import quietIcon from "../look/icon.svg";
import firingIcon from "../look/icon-firing.svg";

const COUNT = /^\(\d+\) /;

/** Shows in the tab's title and icon how many alerts fire. */
export function useTabSign(): void {
  const firing = useStatus().data?.alertsFiring ?? 0;
  useFavicon(firing > 0 ? firingIcon : quietIcon);
  useEffect(() => {
    const sign = () => {
      const bare = document.title.replace(COUNT, "");
      const title = firing > 0 ? `(${firing}) ${bare}` : bare;
      if (document.title !== title) document.title = title;
    };
    sign();
    // Pages set their title themselves.
    const observer = new MutationObserver(sign);
    observer.observe(document.head, { childList: true, subtree: true, characterData: true });
    return () => observer.disconnect();
  }, [firing]);
}
