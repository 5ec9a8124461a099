// The parameters of the form.

/** The order of the page without a parameter. */
export const DEFAULT_SORT = "-players";

/** The parameters of the form, without defaults. */
export function formParameters(form) {
  const parameters = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value !== "" && !(name === "sort" && value === DEFAULT_SORT)) parameters.append(name, value);
  }
  return parameters;
}

/** Sets the form to the parameters of a view. */
export function fillForm(form, view) {
  for (const field of form.elements) {
    if (!field.name) continue;
    if (field.type === "checkbox") field.checked = view.get(field.name) === field.value;
    else field.value = view.get(field.name) ?? (field.name === "sort" ? DEFAULT_SORT : "");
  }
}

/** The parameters of a view that the API has as well. */
export function apiParameters(view) {
  const parameters = new URLSearchParams(view);
  for (const name of ["favourites", "page", "per_page", "sort"]) parameters.delete(name);
  return parameters;
}
