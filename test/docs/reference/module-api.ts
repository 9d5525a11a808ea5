import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import {
  CompilerState,
  Extractor,
  ExtractorConfig,
  ExtractorLogLevel,
  type IConfigFile,
} from '@microsoft/api-extractor';
import { read, ROOT } from '../pages.js';
import { code, table } from './markdown.js';

/** The entries of the package, and where each is listed. */
const ENTRIES = { postern: 'index', 'postern/testing': 'testing/index', 'postern/client': 'client/index' };
type Entry = keyof typeof ENTRIES;

/** What is exported, as API Extractor describes it. */
interface Member {
  kind: string;
  name: string;
  docComment?: string;
  members?: Member[];
}

export interface ModuleApi {
  /** The API reports, by their paths. */
  reports: Record<string, string>;
  /** All public names. */
  page: string;
}

/** The public API: what the declarations of the package say. */
export function moduleApi(): ModuleApi {
  const folder = mkdtempSync(join(tmpdir(), 'postern-api-'));
  try {
    const tsc = join(ROOT, 'node_modules/typescript-7/bin/tsc');
    const project = join(ROOT, 'tsconfig.types.json');
    execFileSync(process.execPath, [tsc, '--project', project, '--outDir', folder], { stdio: 'pipe' });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    shortenSchema(join(folder, 'src/client/schema.d.ts'));
    const entries = Object.keys(ENTRIES) as Entry[];
    const [first, ...others] = entries.map((entry) => configOf(folder, entry));
    // One program for all.
    const compilerState = CompilerState.create(first!, {
      additionalEntryPoints: others.map(({ mainEntryPointFilePath }) => mainEntryPointFilePath),
    });
    const described = [first!, ...others].map((config, at) =>
      describeEntry(entries[at]!, config, compilerState),
    );
    return {
      reports: Object.fromEntries(described.map(({ path, report }) => [path, report])),
      page: described.map(({ text }) => text).join('\n\n'),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The admin API itself is compared as openapi.json. */
function shortenSchema(file: string): void {
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace(/^(export interface \w+ )\{[^]*?^\}$/gm, '$1{}'));
}

function configOf(folder: string, entry: Entry): ExtractorConfig {
  const declarations = join(folder, 'src', `${ENTRIES[entry]}.d.ts`);
  const name = entry.replace('/', '-');
  const level = (logLevel: ExtractorLogLevel, addToApiReportFile = false) => ({
    logLevel,
    addToApiReportFile,
  });
  const configObject: IConfigFile = {
    projectFolder: folder,
    mainEntryPointFilePath: declarations,
    newlineKind: 'lf',
    compiler: {
      overrideTsconfig: { extends: join(ROOT, 'tsconfig.json'), include: [], files: [declarations] },
    },
    apiReport: {
      enabled: true,
      reportFolder: folder,
      reportTempFolder: folder,
      reportFileName: `${name}.api.md`,
    },
    docModel: { enabled: true, apiJsonFilePath: join(folder, `${name}.json`) },
    dtsRollup: { enabled: false },
    messages: {
      extractorMessageReporting: {
        default: level(ExtractorLogLevel.Error),
        // What public names are made of and nobody needs by name. The report names them; what they say is in settings.md,
        // errors.md and request-log-columns.md, or they only compute types.
        'ae-forgotten-export': level(ExtractorLogLevel.Warning, true),
        'ae-undocumented': level(ExtractorLogLevel.None),
        // What is exported is public.
        'ae-missing-release-tag': level(ExtractorLogLevel.None),
      },
      tsdocMessageReporting: { default: level(ExtractorLogLevel.None) },
    },
  };
  return ExtractorConfig.prepare({
    configObject,
    configObjectFullPath: undefined,
    packageJsonFullPath: join(ROOT, 'package.json'),
  });
}

function describeEntry(entry: Entry, config: ExtractorConfig, compilerState: CompilerState) {
  const errors: string[] = [];
  Extractor.invoke(config, {
    compilerState,
    localBuild: true,
    messageCallback: (message) => {
      if (message.logLevel === ExtractorLogLevel.Error)
        errors.push(`${message.formatMessageWithoutLocation()} (${message.sourceFilePath ?? ''})`);
      // The report has the warnings.
      message.handled = true;
    },
  });
  if (errors.length > 0) throw new Error(errors.join('\n'));
  const model = JSON.parse(readFileSync(config.apiJsonFilePath, 'utf8')) as {
    members: [{ members: Member[] }];
  };
  const { members } = model.members[0];
  const names = listed(ENTRIES[entry]).map(({ name }) => name);
  expect([...new Set(members.map(({ name }) => name))].sort()).toEqual(names.sort());
  const report = readFileSync(config.reportFilePath, 'utf8');
  return { path: `api/${basename(config.reportFilePath)}`, report, text: sections(entry, members) };
}

interface Listed {
  name: string;
  /** The source that has it. */
  source: string;
  /** The comment above its group in the entry. */
  group: string;
}

/** The names that an entry exports, in its order. */
function listed(file: string): Listed[] {
  const found: Listed[] = [];
  let group = '';
  const lines = /^\/\/ (.+)$|^export (?:type )?(?:\{([^}]*)\}|\* as (\w+)) from '\.\/(.+)\.js';$/gm;
  for (const [, comment, names, namespace, path] of read(`src/${file}.ts`).matchAll(lines)) {
    if (comment !== undefined) group = comment;
    const source = join('src', dirname(file), `${path}.ts`);
    for (const name of (names ?? namespace ?? '').split(',').map((one) => one.replace('type ', '').trim()))
      if (name !== '') found.push({ name, source, group });
  }
  return found;
}

const KINDS: Record<string, string> = { TypeAlias: 'type', Variable: 'constant' };

function sections(entry: Entry, members: readonly Member[]): string {
  const all = listed(ENTRIES[entry]);
  const groups = [...new Set(all.map(({ group }) => group))].map((group) => {
    const rows = all
      .filter((one) => one.group === group)
      .flatMap(({ name, source }) => {
        const same = members.filter((member) => member.name === name);
        const link = (text: string) => `[${code(text)}](../../${source})`;
        const inside = same.flatMap((member) => (member.kind === 'Namespace' ? member.members! : []));
        return [
          [
            link(name),
            kindOf(same),
            inside.length > 0 ? 'Fields of the schemas of an endpoint.' : about(same),
          ],
          ...inside.map((member) => [link(`${name}.${member.name}`), kindOf([member]), about([member])]),
        ];
      });
    const names = table(['Name', 'Kind', 'What it is'], rows);
    return group === '' ? names : `### ${group}\n\n${names}`;
  });
  return [`## ${code(entry)}`, ...groups].join('\n\n');
}

const kindOf = (members: readonly Member[]) =>
  members.map(({ kind }) => KINDS[kind] ?? kind.toLowerCase()).join(', ');

/** The first sentences of the comments. */
function about(members: readonly Member[]): string {
  return members.map(({ name, docComment = '' }) => firstSentence(name, docComment)).join(' ');
}

function firstSentence(name: string, comment: string): string {
  const lines = comment
    .replace(/^\/\*\*|\*\/$/g, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trim());
  const from = lines.findIndex((line) => line !== '');
  const to = lines.findIndex((line, at) => at > from && /^$|^[-@]/.test(line));
  const text = lines.slice(from, to).join(' ');
  if (from === -1 || text === '' || text.startsWith('@'))
    throw new Error(`${name} needs a comment: docs/reference/module-api.md has its first sentence`);
  return (/^.*?\.(?= |$)/.exec(text)?.[0] ?? `${text}.`).replace(/:\.$/, '.');
}
