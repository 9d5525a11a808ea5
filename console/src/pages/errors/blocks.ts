/** A part of a document. */
export type Block =
  | { kind: 'heading'; level: number; text: string }
  | { kind: 'code' | 'quote' | 'text'; text: string }
  | { kind: 'list'; items: string[] };

/** The blocks of Markdown as docs/reference has it: one line for each paragraph and item, no nested lists, no tables. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  const lines = markdown.replace(/<!--[^]*?-->/g, '').split('\n');
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const heading = /^(#+) (.*)/.exec(line);
    if (line.startsWith('```')) {
      const end = lines.indexOf('```', at + 1);
      blocks.push({ kind: 'code', text: lines.slice(at + 1, end).join('\n') });
      at = end;
    } else if (heading) blocks.push({ kind: 'heading', level: heading[1]!.length, text: heading[2]! });
    else if (line.startsWith('> ')) blocks.push({ kind: 'quote', text: line.slice(2) });
    else if (line.startsWith('- ')) {
      const last = blocks.at(-1);
      if (last?.kind === 'list' && lines[at - 1] !== '') last.items.push(line.slice(2));
      else blocks.push({ kind: 'list', items: [line.slice(2)] });
    } else if (line !== '') blocks.push({ kind: 'text', text: line });
  }
  return blocks;
}

/** The codes that an item is about, which begins with them: `a`, `b`: what to do. */
export function codesOf(item: string): string[] {
  const [codes] = /^`[^:]*`(?=: )/.exec(item) ?? [];
  return codes?.replaceAll('`', '').split(', ') ?? [];
}
