// A request tried against the settings that serve.

import { useEffect, useState } from 'preact/hooks';
import { ask } from '../api/http.ts';
import type { Explained, Live, Site } from '../api/types.ts';
import { findingHref } from '../fields.ts';
import { bytes, number } from '../format.ts';
import { spanOf } from '../highlight.ts';
import { hostOf } from '../hosts.ts';
import { t } from '../i18n/index.ts';
import { useAction, useLoad } from '../load.ts';
import { href, type Place } from '../route.ts';
import { Button, Card, Empty, Failure, Field, PageHead, Select, Verdict } from '../ui/kit.tsx';
import { visible } from '../visible.ts';
import { FindingItem, Marked, ScoreBar } from './event.tsx';

const example = (host: string) => `GET /search?q=1'+UNION+SELECT+name,password+FROM+users--+ HTTP/1.1\nHost: ${host}\nUser-Agent: Mozilla/5.0\nAccept: */*\n`;

export function TryPage({ place }: { place: Place }) {
  const id = place.query.get('id') ?? '';
  const [typed, setText] = useState<string | null>(id ? '' : null);
  const [site, setSite] = useState('');
  const [told, setTold] = useState<Explained | null>(null);
  const sites = useLoad((signal) => ask<Live<Site>>('/sites', { query: { limit: 1000 }, signal }), 'sites');
  // Until something is typed: a request that a site of these settings answers.
  const text = typed ?? (sites.value ? example(hostOf(sites.value.items)) : '');
  const run = useAction();
  const explain = (body: Record<string, unknown>) => run.run(async () => {
    setTold(null);
    setTold(await ask<Explained>('/explain', { method: 'POST', body }));
  });
  useEffect(() => {
    if (!id) return;
    void explain({ request_id: id });
    void ask<string>(`/events/${encodeURIComponent(id)}/request`).then((request) => setText(request.replaceAll('\r\n', '\n')), () => undefined);
  }, [id]);
  const submit = () => explain({ [/^\s*curl(\.exe)?\s/.test(text) ? 'curl' : 'request']: text, ...(site ? { site } : {}) });
  return (
    <>
      <PageHead title={t('try.title')} />
      <p class="dim">{t('try.intro')}</p>
      <div class="stack">
        <Card>
          <form onSubmit={(event) => { event.preventDefault(); void submit(); }}>
            <Field label={t('try.input')}>
              {(field) => <textarea id={field} rows={10} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)}
                onKeyDown={(event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void submit(); }} />}
            </Field>
            <div class="inline">
              <Select hidden label={t('try.site')} value={site} onChange={setSite}
                options={[['', t('try.site')], ...(sites.value?.items ?? []).map((each): [string, string] => [each.name, each.name])]} />
              <Button tone="primary" icon="try" type="submit" disabled={run.busy || !text.trim()}>{t('try.run')}</Button>
            </div>
          </form>
        </Card>
        {run.error !== null && <Failure error={run.error} />}
        {told && <Explanation told={told} />}
      </div>
    </>
  );
}

function Explanation({ told }: { told: Explained }) {
  const { explanation: of } = told;
  const values = of.semantic?.values ?? [];
  const [method = 'GET', target = '/'] = of.request.split(' ');
  return (
    <>
      <Card title={t('try.verdict')} aside={<Verdict action={of.refusal ? 'refuse' : of.verdict.action} />}>
        <p class="reason">{visible(of.refusal?.explanation ?? of.verdict.reason ?? t('try.nothing'))}</p>
        <p class="dim">{told.site} {told.route} · {of.mode} · {of.engine} · {t('try.inspectedBytes', { bytes: bytes(of.body_bytes_inspected) })}</p>
        {of.notes.map((note) => <p class="notice">{note}</p>)}
      </Card>
      {of.semantic && (
        <Card title={t('try.values')}>
          {values.length === 0 && <Empty>{t('try.nothing')}</Empty>}
          {values.map((value) => (
            <div class="finding">
              <ScoreBar score={value} />
              <div class="sum"><h3>{t('try.terms')}</h3><ul>{value.terms.map((term) => <li><code>{term.name}</code><b>{term.weight >= 0 ? '+' : ''}{term.weight.toFixed(2)}</b></li>)}</ul></div>
              {value.findings.map((finding) => <FindingItem finding={finding} field={findingHref(finding, told.site, method, target)} />)}
            </div>
          ))}
        </Card>
      )}
      {of.mode !== 'semantic' && (
        <Card title={t('try.rules')}>
          {of.matches.length === 0 && <Empty>{t('try.nothing')}</Empty>}
          {of.matches.map((match) => (
            <div class="finding">
              <div class="what"><span><a href={href(['rules'], { id: match.rule_id, site: told.site, route: told.route })}>{match.rule_id}</a> {visible(match.message)}</span>
                <b>{match.points.map((each) => `${each.added > 0 ? '+' : ''}${each.added}`).join(' ')}</b></div>
              <code class="evidence"><Marked text={match.value} evidence={[spanOf(match.value, match.span)].filter(Boolean)} /></code>
              <p class="dim inline"><code class="wrap">{visible(match.target)}</code>{match.transformations.length > 0 && <span>t:{match.transformations.join(',t:')}</span>}<code class="wrap">{match.operator.slice(0, 200)}</code></p>
            </div>
          ))}
          {of.not_run.length > 0 && <details><summary>{t('try.notRun')}</summary><ul>{of.not_run.map((group) => <li>{group.why}: {number(group.rules.length)}</li>)}</ul></details>}
        </Card>
      )}
    </>
  );
}
