import { render } from "preact";
import { takeToken } from "./lib/api";
import { followPlaces, keepDrafts } from "./lib/route";
import { follow, isFile, paletteOpen, pane, story, takeRecorded, trafficOpen } from "./lib/store";
import "./style.css";
import { App } from "./ui/shell";

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    paletteOpen.value = !paletteOpen.value;
  } else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "j") {
    event.preventDefault();
    const inside = document.querySelector(".traffic-pane")?.contains(document.activeElement) === true;
    if (trafficOpen.value && inside) {
      trafficOpen.value = false;
      pane.value = "main";
    }
    else {
      trafficOpen.value = true;
      pane.value = "traffic";
      // Once it is drawn.
      setTimeout(() => (document.querySelector<HTMLElement>("[data-testid=calls]") ?? document.querySelector<HTMLElement>("[data-testid=filter]"))?.focus());
    }
  } else if (event.key === "Escape" && !paletteOpen.value && story.value && !(event.target instanceof HTMLInputElement)) story.value = null;
});

if (isFile) {
  takeRecorded();
  followPlaces();
} else {
  takeToken();
  keepDrafts();
  followPlaces();
  void follow();
}
render(<App />, document.getElementById("app")!);
