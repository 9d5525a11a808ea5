import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const src = join(__dirname, '../../src');
const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ts.createSourceFile(path, readFileSync(join(src, path), 'utf8'), ts.ScriptTarget.Latest));

/** All nodes of a file, with it. */
function* nodesOf(node: ts.Node): Generator<ts.Node> {
  yield node;
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* nodesOf(child);
}

// What a call has gathered on its way is in its Call, which each stage takes alone.
it('has no constructor in src/proxy with more than five parameters', () => {
  const constructors = sources
    .filter(({ fileName }) => fileName.startsWith('proxy/'))
    .flatMap((source) =>
      [...nodesOf(source)]
        .filter((node) => ts.isConstructorDeclaration(node))
        .map(({ parameters }) => ({ file: source.fileName, width: parameters.length })),
    );
  expect(constructors.length).toBeGreaterThan(20);
  expect(constructors.filter(({ width }) => width > 5).map(({ file, width }) => `${file}: ${width}`)).toEqual(
    [],
  );
});

it("declares on Express's Request where a call goes, its caller and its Call, and who uses the admin API", () => {
  const declared = sources.flatMap((source) =>
    [...nodesOf(source)]
      .filter((node) => ts.isModuleDeclaration(node))
      .flatMap((module) => [...nodesOf(module)])
      .filter((node) => ts.isInterfaceDeclaration(node) && node.name.text === 'Request')
      .flatMap((node) => (node as ts.InterfaceDeclaration).members)
      .map(({ name }) => `${(name as ts.Identifier).text} in ${source.fileName}`),
  );
  expect(declared.sort()).toEqual([
    'access in admin/access/access.ts',
    'actor in admin/current-actor.ts',
    'call in proxy/call.ts',
    'caller in auth/caller.ts',
    'target in proxy/call.ts',
  ]);
});
