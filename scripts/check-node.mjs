// Imports nothing: an older Node fails on imports, with a stack, before the first line of a file runs.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `Postern needs Node.js >= 20.19, this is ${process.versions.node}. Install Node.js 24 LTS (at least 20.19) and try again.`,
  );
  process.exit(1);
}
