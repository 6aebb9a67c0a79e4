// Texts with a meaning for a program that renders, prints or runs them.
export const SHA = '0123456789abcdef0123456789abcdef01234567';

export const HOSTILE = [
  // tables and fences
  'a | b || c \\| d \\\\| e \\', '|', '\\|`|`\\\\|', '| - | - |', '|:--|:-:|\n| x | y |', '`', '``a` b', '```', '`'.repeat(300), '````` js\n```', '~~~\n~~~', '    indented',
  // blocks
  '# heading', 'a\n===', '---', '***', '> quote', '- item\n- item', '1. one', '- [ ] task', '[x] done', '\n\n# heading\n\n', '\r\r# heading', '\t# tab',
  // links
  '[link](https://evil.example/)', '![image](https://evil.example/x.png)', '[ref]: https://evil.example/ "t"', '[ref]', '[ref][]', '<https://evil.example/>', 'https://evil.example/',
  'www.evil.example', 'http://[::1]/', 'mailto:evil@evil.example', 'evil@evil.example', 'xmpp:evil@evil.example/x', '[^1]', '[^1]: note', '[a](javascript:alert(1))', 'javascript:alert(1)', '](https://evil.example/)',
  // emphasis, escapes, entities, mathematics
  '**bold** _emphasis_ ~~gone~~', '&#64;octocat &amp;lt; &lt;b&gt; &NotAnEntity;', '\\@octocat \\<b> \\`', '$x$ $$x$$ $`x`$', ':shipit: :+1:', '\\', '\\\\\\',
  // HTML
  '<!--', '-->', '<!-- -->', '<!-- outpost:results -->', '--><!-- outpost:results --><!--', '<![CDATA[', ']]>', '<?php echo 1 ?>', '<!DOCTYPE html>', '</details>', '</td></tr></table>', '</code></pre>', '<table><tr><td>',
  '<script>alert(1)</script>', '<iframe src=//evil.example></iframe>', '<style>*{display:none}</style>', '<img src=x onerror=alert(1)>', '<a href="javascript:alert(1)">x</a>', '<svg/onload=alert(1)>',
  '<plaintext>', '<textarea>', '<xmp>', '<title>', '<details open>', '<b', '<', '"><b>', "'><b>", '\' onmouseover=alert(1) x=\'',
  // GitHub
  '@octocat', '@pytorch/owners', '@everyone', '#123', 'pytorch/pytorch#1', 'GH-1', SHA, `pytorch/pytorch@${SHA}`, SHA.slice(0, 7), 'https://github.com/pytorch/pytorch/issues/1', 'Fixes #1', '/merge',
  '@pytorchbot merge -f "x"', '@outpost-bot ok-to-test\n@outpost-bot retest', '::error file=x::y', '::set-output name=a::b', '::add-mask::x', '${{ secrets.GITHUB_TOKEN }}',
  // invisible characters, and characters that move their neighbours
  '\u202egnp.exe\u202c', '\u2066a\u2069\u061c', 'a\u200bb\u200d\ufeff', '\u00ad\u2060', '\u2028# heading\u2029', '\u0085x', `e${'\u0301'.repeat(60)}`, '\u{e0041}\u{e007f}', '\ud83d\ude00\u200d\ud83d\ude00', '\u3164', '\ufffd',
  '\u0007\b\b\bbell', '\x1b[2J\x1b[41mred', '\x1b]0;title\x07', '\x1b]8;;https://evil.example/\x1b\\x\x1b]8;;\x1b\\', '\u009b41m', '\u009d0;x\u009c', '\x7f', '\x1bPq\x1b\\',
  // other languages than Markdown
  '%s%n%x%1000000d', '\'; DROP TABLE job; --', '$(touch pwned)`touch pwned`', '../../../etc/passwd', '{{7*7}}', '{"a":1}', 'null', 'NaN', '-1', 'true',
];
