class Mcproof < Formula
  desc "Test, check and monitor MCP servers over their real transports"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@RELEASES@/mcproof-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256_aarch64-apple-darwin@"
    end
    on_intel do
      url "@RELEASES@/mcproof-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256_x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@RELEASES@/mcproof-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256_aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@RELEASES@/mcproof-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256_x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "mcproof"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/mcproof.bash" => "mcproof"
    zsh_completion.install "completions/_mcproof"
    fish_completion.install "completions/mcproof.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcproof --version")
    (testpath/"shop.mcproof.yaml").write <<~YAML
      server: { stdio: mcproof demo shop }
      tests:
        - name: a product is in stock
          steps:
            - call: check_inventory
              with: { product_id: PROD-123 }
              expect: { available: 10 }
    YAML
    assert_match "1 passed", shell_output("#{bin}/mcproof test 2>&1")
  end
end
