// Buttons that copy the text beside them.

/** Copies a text. Falls back to execCommand where the clipboard API is missing, as on pages without HTTPS. */
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
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}

/** Copies the text beside a button, and confirms it. */
export async function copyFrom(button) {
  const source = button.closest(".address, .command").querySelector("code, pre");
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
  if (button !== null) copyFrom(button);
});
