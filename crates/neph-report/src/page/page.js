// Printing shows what is folded on screen. Nothing else on this page needs a script.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
