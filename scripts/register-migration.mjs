// Adds a migration to the list in src/database/migrations.ts.

/**
 * @param list text of that file
 * @param file name of the migration's file, without `.ts`
 * @param name name of its class
 * @returns the new text; null if the list has another form
 */
export function registerMigration(list, file, name) {
  const imports = list.lastIndexOf('\nimport { ');
  const afterImports = list.indexOf('\n', imports + 1) + 1;
  const end = list.lastIndexOf('\n];') + 1;
  if (imports === -1 || end <= afterImports) return null;
  const added = `import { ${name} } from '../../migrations/${file}.js';\n`;
  return `${list.slice(0, afterImports)}${added}${list.slice(afterImports, end)}  ${name},\n${list.slice(end)}`;
}
