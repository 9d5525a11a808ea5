import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What a model costs, which price list a provider has, and the models that were called without a price. */
export class Prices1795300000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE price (
        id uuid CONSTRAINT price_pkey PRIMARY KEY,
        -- The name of a price list (provider.catalog) or of a provider.
        catalog text NOT NULL,
        -- Exact, or the start of a name and a final asterisk.
        model text NOT NULL,
        effective_from timestamptz NOT NULL,
        -- USD per million tokens.
        input numeric(12,6),
        cached_input numeric(12,6),
        cache_write numeric(12,6),
        cache_write_1h numeric(12,6),
        output numeric(12,6),
        -- USD.
        per_call numeric(12,6),
        extra jsonb,
        tiers jsonb,
        source text NOT NULL CONSTRAINT price_source_check CHECK (source IN ('catalog', 'custom')),
        note text,
        version int NOT NULL DEFAULT 1,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT price_catalog_model_effective_from_key UNIQUE (catalog, model, effective_from, source)
      );

      -- Each replica forgets the prices that it holds in memory when this counter changes. A price that a replica takes
      -- from the catalogue changes nothing for the others, which take the same; a corrected one does.
      INSERT INTO change_counter (name, value) VALUES ('prices', 0);
      CREATE TRIGGER price_changed AFTER UPDATE ON price
        FOR EACH ROW EXECUTE FUNCTION count_change('prices');
      CREATE TRIGGER price_added AFTER INSERT ON price
        FOR EACH ROW WHEN (NEW.source = 'custom') EXECUTE FUNCTION count_change('prices');
      CREATE TRIGGER price_removed AFTER DELETE ON price
        FOR EACH ROW EXECUTE FUNCTION count_change('prices');

      -- Written by the log writer before the first such row of a day, so that a later price finds the rows.
      CREATE TABLE unpriced_model (
        provider text,
        model text,
        day date,
        -- When its rows got a price for the first time.
        priced_at timestamptz,
        CONSTRAINT unpriced_model_pkey PRIMARY KEY (provider, model, day)
      );

      ALTER TABLE provider ADD COLUMN catalog text;
    `);
    for (const [catalog, url] of CATALOGS) {
      await queryRunner.query('UPDATE provider SET catalog = $1 WHERE url ~ $2', [catalog, url]);
    }
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE provider DROP COLUMN catalog;
      DROP TABLE unpriced_model, price;
      DELETE FROM change_counter WHERE name = 'prices';
    `);
  }
}

/** The price lists of the presets of this release, by the start of the provider's URL. */
const CATALOGS = [
  ['openai', '^https://api\\.openai\\.com(/|$)'],
  ['anthropic', '^https://api\\.anthropic\\.com(/|$)'],
  ['google', '^https://([a-z0-9-]+\\.)*googleapis\\.com(/|$)'],
  ['mistral', '^https://api\\.mistral\\.ai(/|$)'],
  ['groq', '^https://api\\.groq\\.com(/|$)'],
  ['openrouter', '^https://openrouter\\.ai(/|$)'],
  ['together', '^https://api\\.together\\.(ai|xyz)(/|$)'],
  ['deepseek', '^https://api\\.deepseek\\.com(/|$)'],
  ['x-ai', '^https://api\\.x\\.ai(/|$)'],
  ['azure', '^https://[a-z0-9-]+\\.(openai|cognitiveservices|services\\.ai)\\.azure\\.com(/|$)'],
  ['aws', '^https://bedrock-runtime\\.[a-z0-9-]+\\.amazonaws\\.com(/|$)'],
] as const;
