// Sets the colour scheme before the first paint. A file of its own, because the content security policy allows no
// inline script.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('postern-color-scheme');
  } catch {
    // Storage is turned off: the scheme of the system applies.
  }
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const scheme = chosen === 'light' || chosen === 'dark' ? chosen : dark ? 'dark' : 'light';
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme);
})();
