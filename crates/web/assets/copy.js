// Buttons that copy what stands beside them.

/** Copies a text, also where the page has no secure connection and so no clipboard. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "quiet";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/** Copies what a button is for, and shows that it did. */
export async function press(button) {
  const source = button.parentElement.querySelector("code, pre");
  if (source === null || !(await copy(source.textContent))) return;
  const label = button.getAttribute("aria-label");
  button.classList.add("done");
  button.setAttribute("aria-label", "Copied");
  button.title = "Copied";
  setTimeout(() => {
    button.classList.remove("done");
    button.setAttribute("aria-label", label);
    button.title = label;
  }, 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (button !== null) press(button);
});
